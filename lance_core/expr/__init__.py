r"""The filter language: the SQL of Lance's ``filter=``, parsed, bound to columns and judged.

A filter is an expression that is true, false or unknown (null) for every row; rows for which it is
true are found. What this page does not list is refused, with the character at which it stands,
what was expected there and, where one is known, what to write instead. Text behind the filter is
refused too, but for one ``;``.

**Names.** ``price``; ``PRICE`` (an exact name wins, else capitals do not matter); between
backticks, names of other characters, in exactly these capitals: ```my col```. Parts of structs:
``st.x``, ``st.`y z```, ``st['x']``, ``get_field(st, 'x')``; their capitals matter; null where the
struct is. Items of lists, from 1 or, from the end, -1: ``nums[1]``; null where there is none.
``_rowid``, ``_rowaddr`` and ``_rowoffset`` belong to every table.

**Literals.** ``5``, ``1.5``, ``.5``, ``1e3``, ``true``, ``false``, ``NULL``; texts ``'it''s'``, in
which a backslash is a character as any other; ``"text"`` is a text too, but an error where a column
has that name; bytes ``X'05FF'`` or ``0x05ff``; ``date '2024-01-31'``,
``timestamp '2024-01-31 12:00:00.5'`` (``T`` between, an offset behind, or no time at all; cut to
microseconds, ``timestamp(9)`` to nanoseconds); ``decimal(10,2) '1.25'``; lists ``[1, 2]``.
``-- comment`` and ``/* comment */`` are left out.

**Parameters.** ``cat = $cat AND id IN $ids`` with values given beside the text: texts, numbers,
truth values, null, dates, times, durations, bytes, and lists or arrays of these behind ``IN`` and
as arguments of functions. A parameter is a value wherever a literal may stand, never text that is
parsed. Beside decimals it may be a float or a text, as exact as the column.

**Literals beside a column** become what the column is, and are refused if it cannot hold them: no
text for a number nor the other way round, no ``5.0`` for whole numbers, none beyond the column's
range, no ``1.25`` for decimals (write ``decimal(10,2) '1.25'``). Floats are rounded to the column.
Texts such as ``'2024-01-31'`` are taken for dates and timestamps, ``'12:00:00'`` for times of the
day. Durations are written ``arrow_cast(90, 'Duration(Second)')``. Between all other operands the
wider type is used: whole numbers become floats, a text literal is read as the other side's type.

**Operators**, tightest first: ``::type``; ``-``; ``* / % ||``; ``+ -``; ``<< >>``; ``= == <> != <
<= > >=`` with ``[NOT] IN``, ``[NOT] BETWEEN``, ``[NOT] LIKE``, ``[NOT] ILIKE``; ``IS [NOT] NULL``,
``IS [NOT] TRUE``, ``IS [NOT] FALSE``, ``IS [NOT] DISTINCT FROM``; ``NOT``; ``AND``; ``OR``. A test
at the right of a comparison stands in brackets. Whole numbers are cut towards zero by ``/``, and
dividing by zero is an error. Decimals keep four more digits behind the point when divided, and the
rest is cut. Whole numbers are shifted by the number of bits modulo their width. In patterns ``%``
is any text, ``_`` one character, and ``\`` takes the next one as it is.

**Types** of ``CAST(x AS type)``, ``TRY_CAST`` (null instead of an error) and ``x::type``:
``tinyint``, ``smallint``, ``int``, ``integer`` and ``bigint``, each ``unsigned`` too; ``float`` (32
bits), ``double``, ``decimal(p,s)``, ``string``, ``binary``, ``boolean``, ``date``,
``timestamp(0|3|6|9)``, ``datetime``. ``arrow_cast(x, 'Int32')`` takes Arrow's names.

**Functions.** Texts: ``lower upper length char_length character_length octet_length left right
btrim concat replace reverse split_part strpos starts_with ends_with contains contains_tokens
regexp_like regexp_match md5 sha256``. Lists: ``array_has array_contains list_contains
array_has_any array_has_all array_length cardinality array_element make_array``. Numbers: ``abs
round power sqrt ln isnan random``. Any: ``coalesce nullif greatest least``. Times: ``now
current_timestamp current_date to_timestamp to_date date_trunc date_part`` (units ``year quarter
month week day hour minute second``; parts also ``doy dow epoch``). ``regexp_match`` is never
unknown: false for null.

**Regular expressions** are those of Rust's ``regex`` crate, found anywhere in the text, with flags
``i m s x u U`` as third argument or as ``(?i)``; letters, digits and blanks are Unicode's. Time
grows with the text only. Refused are ``&&``, ``--``, ``~~`` and brackets inside classes, ``(?-u)``,
``(?R)``, more than 1000 repetitions, sets other than general categories (``\p{Lu}``, as Unicode 15
counts them) and scripts (``\p{Greek}``), ``\B``, and ``\b``, ``\<`` and ``\>`` other than before
and behind a whole expression, or one of its choices, where a word begins or ends: ``\bword\b``.

**Null** is unknown: a comparison with it is, ``NOT`` of it is, ``x NOT IN (1, NULL)`` never holds.

**Floats** are in total order: -NaN, -inf, ..., -0.0, 0.0, ..., inf, NaN, each equal to itself; both
zeros are equal to a zero that is a literal.

**Time zones.** A time without a zone, in a literal or a column, is wall-clock time of the zone on
the other side; offsets of literals are converted to UTC and dropped before. A date is midnight in
UTC, if it is not ``arrow_cast`` to a zone. Two columns with zones meet as instants. ``date_part``,
``date_trunc``, ``to_date`` and ``CAST(x AS date)`` count in the zone of the column. Of two times
that its clocks show alike, the first is meant.

**Differences** from pylance 14.0.2, all on purpose: it stops reading at the first word that it does
not understand, and we refuse; it converts literals of other kinds under ``NOT``, ``IS`` and in
functions, and we refuse them wherever a bare column is compared; it takes texts for dates under
those only, and we everywhere. It cuts digits of timestamps that a column has not, and we compare
all: ``'... 00:00:00.5'`` lies between two whole seconds. Where it joins comparisons of one column
it takes what is unknown for false, then ``NOT`` of that for true: ``NOT (x IN (1) AND x IN (2))``
finds nulls there. It leaves out casts that lose something, such as
``CAST(ts AS timestamp(0)) = ...`` or ``CAST(dec AS int) = 1``, and compares what is stored; we
cast. Its clocks are put forward for the last time in 2099, ours as the rule of the zone says.
``Date64`` holds whole days. Floats become decimals exactly, and decimals meet floats as float64,
also in ``power``. ``round`` leaves floats too large to be moved as they are, not infinite.
``array_has_all(NULL, [])`` is unknown, not true. Alone in a computed column its ``i8 + 1`` is an
int8 that wraps, as its literals become what the column is there, but not in filters; ours widens in
both.
"""
