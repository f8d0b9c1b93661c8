import asyncio

from service.cli.joined_writes import JoinedWrites


class Sent(asyncio.Transport):
    """A transport that keeps what each call sends."""

    def __init__(self):
        super().__init__()
        self.sent = []
        self.is_closed = False

    def write(self, data):
        self.sent.append(bytes(data))

    def writelines(self, pieces):
        self.sent.append(b"".join(pieces))

    def close(self):
        self.is_closed = True

    def get_extra_info(self, name, default=None):
        return f"info on {name}"


async def test_head_and_body_leave_in_one_piece():
    sent = Sent()
    joined = JoinedWrites(sent, asyncio.get_running_loop())
    joined.write(b"head ")
    joined.write(b"body")
    assert sent.sent == [b"head body"]
    await asyncio.sleep(0)
    assert sent.sent == [b"head body"]


async def test_a_head_whose_body_is_late_leaves_in_the_next_turn():
    sent = Sent()
    joined = JoinedWrites(sent, asyncio.get_running_loop())
    joined.write(b"head")
    assert sent.sent == []
    await asyncio.sleep(0)
    assert sent.sent == [b"head"]


async def test_the_order_of_many_pieces_stays():
    sent = Sent()
    joined = JoinedWrites(sent, asyncio.get_running_loop())
    for number in range(7):
        joined.write(b"%d" % number)
        if number == 3:
            await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert b"".join(sent.sent) == b"0123456"


async def test_closing_sends_what_is_held_first():
    sent = Sent()
    joined = JoinedWrites(sent, asyncio.get_running_loop())
    joined.write(b"all")
    joined.close()
    assert sent.sent == [b"all"]
    assert sent.is_closed


async def test_all_else_is_the_transports():
    joined = JoinedWrites(Sent(), asyncio.get_running_loop())
    assert joined.get_extra_info("peername") == "info on peername"
