//! Operators on the whole document: `$and`, `$or`, `$nor`, `$expr`, `$jsonSchema`, `$comment` and the constants.

use super::{Level, Parser};
use crate::Expression;
use crate::matcher::schema::property_count;
use crate::matcher::{BucketGeoWithin, Node, Schema, TextClause, WhereClause};
use pando_base::{Error, ErrorCode, Result, operation};
use pando_doc::{Element, FieldPath, Value, doc};
use std::sync::Arc;

impl Parser<'_> {
    /// None for operators without effect.
    pub(super) fn operator_on_document(&self, element: Element<'_>, level: Level) -> Result<Option<Node>> {
        let name = std::str::from_utf8(element.name).unwrap_or_default();
        Ok(Some(match name {
            "$and" => Node::And(self.branches(element, level)?),
            "$or" => Node::Or(self.branches(element, level)?),
            "$nor" => {
                let branches = self.branches(element, level)?;
                if branches.iter().any(Node::has_text) {
                    return Err(Error::bad_value("text expression not allowed in nor"));
                }
                Node::Nor(branches)
            }
            "$comment" => return Ok(None),
            "$expr" => self.expr(element, level)?,
            "$alwaysTrue" => constant(element, Node::AlwaysTrue)?,
            "$alwaysFalse" => constant(element, Node::AlwaysFalse)?,
            // The fields of a reference are fields like others.
            "$ref" | "$id" | "$db" => {
                let path = FieldPath::lenient(element.name)?;
                super::comparison(&path, crate::matcher::ComparisonOperator::Equal, element.value)?
            }
            "$text" => self.text_clause(element, level)?,
            "$where" => self.where_clause(element, level)?,
            "$jsonSchema" => self.json_schema(element)?,
            "$_internalBucketGeoWithin" => Node::BucketGeo(Arc::new(BucketGeoWithin::parse(element.value)?)),
            "$_internalSchemaMinProperties" => self.properties(element, "minProperties")?,
            "$_internalSchemaMaxProperties" => self.properties(element, "maxProperties")?,
            "$_internalSchemaCond" => self.conditional(element, level)?,
            "$_internalSchemaXor" => self.one_of(element, level)?,
            "$_internalSchemaRootDocEq" => match element.value {
                Value::Document(_) => {
                    let expression = doc! { "$eq": ["$$ROOT", { "$literal": element.value }] };
                    Node::Expr(Box::new(Expression::parse(Value::Document(expression.view()), self.context)?))
                }
                other => {
                    let reason = format!("{name} must be an object, found type {}", other.value_type());
                    return Err(Error::type_mismatch(reason));
                }
            },
            "$sampleRate" => self.sample_rate(element, level)?,
            _ => {
                let hint =
                    "If you have a field name that starts with a '$' symbol, consider using $getField or $setField.";
                let reason = format!("unknown top level operator: {}. {hint}", element.name);
                return Err(Error::bad_value(reason));
            }
        }))
    }

    fn branches(&self, element: Element<'_>, level: Level) -> Result<Vec<Node>> {
        let Value::Array(array) = element.value else {
            return Err(Error::bad_value(format!("{} must be an array", element.name)));
        };
        if array.is_empty() {
            return Err(Error::bad_value("$and/$or/$nor must be a nonempty array"));
        }
        let branch = |value: Value<'_>| match value {
            Value::Document(filter) => self.document(filter, level),
            _ => Err(Error::bad_value("$or/$and/$nor entries need to be full objects")),
        };
        array.values().map(branch).collect()
    }

    /// So many of all documents, by chance.
    fn sample_rate(&self, element: Element<'_>, level: Level) -> Result<Node> {
        if level == Level::Nested {
            return Err(Error::bad_value("$sampleRate can only be applied to the top-level document"));
        }
        let Some(rate) = element.value.to_double() else {
            return Err(Error::bad_value("argument to $sampleRate must be a numeric type"));
        };
        if !(0.0..=1.0).contains(&rate) {
            return Err(Error::bad_value("numeric argument to $sampleRate must be in [0, 1]"));
        }
        if rate == 1.0 {
            return Ok(Node::AlwaysTrue);
        }
        let condition = doc! { "$lt": [{ "$rand": {} }, rate] };
        let expression = Expression::parse(Value::Document(condition.view()), self.context)?;
        Ok(if rate == 0.0 { Node::AlwaysFalse } else { Node::Expr(Box::new(expression)) })
    }

    /// So many fields at least, or at most.
    fn properties(&self, element: Element<'_>, keyword: &str) -> Result<Node> {
        let count = property_count(element)?;
        let schema = doc! { (keyword): count };
        Ok(Node::Schema(Box::new(Schema::parse(schema.view(), self.context)?)))
    }

    /// The second where the first holds, else the third.
    fn conditional(&self, element: Element<'_>, level: Level) -> Result<Node> {
        let mut branches = self.internal_branches(element, level)?.into_iter();
        let (Some(condition), Some(then), Some(otherwise), None) =
            (branches.next(), branches.next(), branches.next(), branches.next())
        else {
            return Err(Error::failed_to_parse(format!("{} requires exactly three MatchExpressions", element.name)));
        };
        let first = Node::And(vec![condition.clone(), then]);
        Ok(Node::Or(vec![first, Node::And(vec![Node::negate(condition), otherwise])]))
    }

    /// One of these and no other.
    fn one_of(&self, element: Element<'_>, level: Level) -> Result<Node> {
        let branches = self.internal_branches(element, level)?;
        let alone = |place: usize| {
            let others = branches.iter().enumerate().filter(|(other, _)| *other != place);
            let others: Vec<Node> = others.map(|(_, node)| node.clone()).collect();
            let own = branches.get(place).cloned();
            Node::And(own.into_iter().chain((!others.is_empty()).then_some(Node::Nor(others))).collect())
        };
        operation::tick((branches.len() * branches.len()) as u64)?;
        Ok(Node::Or((0..branches.len()).map(alone).collect()))
    }

    /// Searches have no place in these.
    fn internal_branches(&self, element: Element<'_>, level: Level) -> Result<Vec<Node>> {
        let branches = self.branches(element, level)?;
        if branches.iter().any(|branch| branch.has_text() || branch.near_count() > 0) {
            return Err(Error::bad_value(format!("{} cannot contain $text or $near", element.name)));
        }
        Ok(branches)
    }

    fn expr(&self, element: Element<'_>, level: Level) -> Result<Node> {
        if level == Level::Nested {
            return Err(Error::bad_value("$expr can only be applied to the top-level document"));
        }
        if !self.context.features.expr {
            let reason = "$expr is not allowed in this context";
            return Err(Error::new(ErrorCode::QueryFeatureNotAllowed, reason));
        }
        Ok(Node::Expr(Box::new(Expression::parse(element.value, self.context)?)))
    }

    fn text_clause(&self, element: Element<'_>, level: Level) -> Result<Node> {
        self.check_place(level, self.context.features.text, "$text")?;
        Ok(Node::Text(TextClause::parse(element.value)?))
    }

    fn where_clause(&self, element: Element<'_>, level: Level) -> Result<Node> {
        self.check_place(level, self.context.features.javascript, "$where")?;
        Ok(Node::Where(WhereClause::parse(element.value, self.context)?))
    }

    fn check_place(&self, level: Level, is_allowed: bool, name: &str) -> Result<()> {
        if level == Level::Nested {
            return Err(Error::bad_value(format!("{name} can only be applied to the top-level document")));
        }
        if !is_allowed {
            return Err(Error::bad_value(format!("{name} is not allowed in this context")));
        }
        Ok(())
    }

    fn json_schema(&self, element: Element<'_>) -> Result<Node> {
        if !self.context.features.json_schema {
            let reason = "$jsonSchema is not allowed in this context";
            return Err(Error::new(ErrorCode::QueryFeatureNotAllowed, reason));
        }
        match element.value {
            Value::Document(schema) => Ok(Node::Schema(Box::new(Schema::parse(schema, self.context)?))),
            _ => Err(Error::type_mismatch("$jsonSchema must be an object")),
        }
    }
}

fn constant(element: Element<'_>, node: Node) -> Result<Node> {
    if element.parse_i64()? == 1 {
        return Ok(node);
    }
    Err(Error::failed_to_parse(format!("{} must be an integer value of 1", element.name)))
}
