//! The limits, in bytes, of what stages make inside a pipeline.

use super::node::{Node, node_with};
use super::*;

async fn filled(parameters: &[(&str, &str)]) -> Node {
    let mut node = node_with(parameters).await;
    let text = "x".repeat(1000);
    node.insert((0..200).map(|id| doc! { "_id": id, "a": (id % 2), "text": (text.as_str()) }).collect()).await;
    node
}

fn aggregate(stages: Vec<Doc>) -> Doc {
    let mut body = pando_doc::DocBuilder::new();
    body.append("aggregate", "c");
    body.array("pipeline", |array| stages.iter().for_each(|stage| array.push(stage)));
    body.document("cursor", |_| {});
    body.finish()
}

#[test]
fn u9_a_facet_takes_its_input_in_pieces() {
    run(async {
        let facet = doc! {
            "$facet": {
                "count": [{ "$count": "n" }],
                "first": [{ "$sort": { "_id": 1 } }, { "$limit": 2 }, { "$project": { "_id": 1 } }],
                "some": [{ "$limit": 3 }, { "$project": { "_id": 1 } }],
                "groups": [{ "$group": { "_id": "$a", "n": { "$sum": 1 } } }, { "$sort": { "_id": 1 } }],
                "none": [{ "$match": { "_id": (-1) } }],
                "joined": [
                    { "$match": { "_id": { "$lt": 2 } } },
                    { "$lookup": { "from": "c", "localField": "_id", "foreignField": "_id", "as": "found" } },
                    { "$project": { "n": { "$size": "$found" } } },
                ]
            }
        };
        let expected = doc! {
            "count": [{ "n": 200 }],
            "first": [{ "_id": 0 }, { "_id": 1 }],
            "some": [{ "_id": 0 }, { "_id": 1 }, { "_id": 2 }],
            "groups": [{ "_id": 0, "n": 100 }, { "_id": 1, "n": 100 }],
            "none": [],
            "joined": [{ "_id": 0, "n": 1 }, { "_id": 1, "n": 1 }]
        };
        // However small the pieces are, the results are the same; and input that is larger than any limit is no matter.
        for bytes in ["1", "5000", "104857600"] {
            let mut node = filled(&[
                ("internalQueryFacetBufferSizeBytes", bytes),
                ("internalDocumentSourceGroupMaxMemoryBytes", "50000"),
            ])
            .await;
            assert_eq!(node.find(aggregate(vec![facet.clone()])).await, vec![expected.clone()], "{bytes}");
        }
    });
}

#[test]
fn u9_the_document_of_a_facet_is_bounded() {
    run(async {
        let mut node = filled(&[("internalQueryFacetMaxOutputDocSizeBytes", "50000")]).await;
        let few = doc! { "$facet": { "all": [{ "$limit": 20 }] } };
        assert_eq!(node.find(aggregate(vec![few])).await.len(), 1);
        let many = doc! { "$facet": { "half": [{ "$limit": 30 }], "other": [{ "$limit": 30 }] } };
        assert_eq!(node.code(aggregate(vec![many])).await, 4_031_700);
        node.ok_on("admin", doc! { "setParameter": 1, "internalQueryFacetMaxOutputDocSizeBytes": 100_000 }).await;
        let many = doc! { "$facet": { "half": [{ "$limit": 30 }], "other": [{ "$limit": 30 }] } };
        assert_eq!(node.find(aggregate(vec![many])).await.len(), 1);
    });
}

#[test]
fn u9_what_a_lookup_finds_for_one_document_is_bounded() {
    run(async {
        let mut node = node_with(&[]).await;
        let text = "x".repeat(1 << 20);
        for id in 0..20 {
            node.insert_into("other", &[doc! { "_id": id, "a": 1, "text": (text.as_str()) }]).await;
        }
        node.insert(vec![doc! { "_id": 1 }]).await;
        let limit = doc! { "setParameter": 1, "internalLookupStageIntermediateDocumentMaxSizeBytes": (16 << 20) };
        node.ok_on("admin", limit).await;
        let lookup = doc! { "$lookup": { "from": "other", "localField": "_id", "foreignField": "a", "as": "found" } };
        let count = doc! { "$project": { "n": { "$size": "$found" } } };
        let reason = "Total size of documents in other matching pipeline's $lookup stage exceeds 16777216 bytes";
        let reply = node.run(aggregate(vec![lookup.clone(), count.clone()])).await;
        assert_eq!(
            (number(&reply, "code"), reply.get("errmsg").unwrap().as_str().unwrap().contains(reason)),
            (4568.0, true),
            "{reply}"
        );
        // One by one there is no limit.
        let unwound = vec![lookup.clone(), doc! { "$unwind": "$found" }, doc! { "$count": "n" }];
        assert_eq!(node.find(aggregate(unwound)).await, vec![doc! { "n": 20 }]);
        let limit = doc! { "setParameter": 1, "internalLookupStageIntermediateDocumentMaxSizeBytes": (32 << 20) };
        node.ok_on("admin", limit).await;
        assert_eq!(node.find(aggregate(vec![lookup, count])).await, vec![doc! { "_id": 1, "n": 20 }]);
        let too_little = doc! { "setParameter": 1, "internalLookupStageIntermediateDocumentMaxSizeBytes": 1 };
        assert_eq!(node.code_on("admin", too_little).await, 2);
    });
}
