"""What plans look like, for the OpenAPI document."""

from __future__ import annotations

EXAMPLE_TEXT = """\
Take: columns=[id, _distance]
  MergeByDistance: metric=l2, offset=0, k=10
    IndexSearch: index=vec_idx, segment=0d73acf1-a8bb-4fe2-aaa4-5941054043e5, type=IVF_FLAT,\
 metric=l2, probes=automatic, 1 to 64, partitions=64, fragments=3, k=10"""

EXAMPLE_HYBRID_TEXT = """\
Take: columns=[id, _distance, _score, _relevance_score]
  Fuse: fusion=rrf, fusion_k=60, offset=0, k=3
    Take: columns=[_rowaddr, _distance]
      MergeByDistance: metric=l2, offset=0, k=3
        IndexSearch: index=vec_idx, segment=0d73acf1-a8bb-4fe2-aaa4-5941054043e5, type=IVF_FLAT,\
 metric=l2, probes=automatic, 1 to 64, partitions=64, fragments=3, k=3
    Take: columns=[_rowaddr, _score]
      RankByScore: offset=0, k=3
        Match: column=text, text=red fox, operator=or
          TextIndexSearch: index=text_idx, segment=350f9969-92e2-455c-8923-33a1a0febc81,\
 partitions=1, fragments=3"""

EXAMPLE_PLAN: dict[str, object] = {
    "schema_version": 1,
    "version": 12,
    "plan": {
        "node": "Take",
        "settings": {"columns": ["id", "_distance"]},
        "inputs": [
            {
                "node": "MergeByDistance",
                "settings": {"metric": "l2", "offset": 0, "k": 10},
                "inputs": [
                    {
                        "node": "IndexSearch",
                        "settings": {
                            "index": "vec_idx",
                            "segment": "0d73acf1-a8bb-4fe2-aaa4-5941054043e5",
                            "type": "IVF_FLAT",
                            "metric": "l2",
                            "probes": {"minimum": 1, "maximum": 64},
                            "partitions": 64,
                            "fragments": 3,
                            "k": 10,
                        },
                        "inputs": [],
                    }
                ],
            }
        ],
    },
    "skipped": [],
}

EXAMPLE_REASON: dict[str, object] = {
    "version": 12,
    "row_id": 4294967334,
    "reason": "partition_not_probed",
    "detail": {
        "segment": "0d73acf1-a8bb-4fe2-aaa4-5941054043e5",
        "partition": 17,
        "partition_rank": 9,
        "probed": 4,
        "partitions": 64,
        "distance": 0.8125,
    },
    "text": "row 4294967334 lies in a partition that was not probed: segment"
    " 0d73acf1-a8bb-4fe2-aaa4-5941054043e5, partition 17, partition_rank 9, probed 4, partitions"
    " 64, distance 0.8125",
}
