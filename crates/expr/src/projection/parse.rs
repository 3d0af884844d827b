//! From a specification to the tree.
//!
//! A field says what kind of projection it is once it keeps, drops or computes something other than
//! `_id`; whoever comes later and says otherwise is refused. Where none says so, the operators of
//! `find` and `_id` decide at the end.

use super::tree::{Branch, Child};
use super::{Projection, ProjectionKind, ProjectionPolicies, Slice};
use crate::{Expression, Features, MatchExpression, ParseContext};
use bstr::{BStr, ByteSlice};
use pando_base::{Error, ErrorCode, Result, operation};
use pando_doc::{DocRef, Element, FieldPath, Value, doc};

struct Parser<'c> {
    policies: ProjectionPolicies,
    context: &'c ParseContext,
    /// Decided by the first field that says it.
    kind: Option<ProjectionKind>,
    /// Whether `_id` as a whole is kept or dropped, if that is said.
    id: Option<bool>,
    /// True if something is said of `_id` or a part of it.
    is_id_named: bool,
    positional: Option<FieldPath>,
    has_elem_match: bool,
    has_slice: bool,
    has_meta: bool,
}

/// Where a field of the specification stands.
struct Place<'p> {
    parent: &'p mut Branch,
    /// The path of the parent; none for the root.
    prefix: Option<&'p FieldPath>,
}

impl Place<'_> {
    fn is_root(&self) -> bool {
        self.prefix.is_none()
    }

    fn whole(&self, path: &FieldPath) -> Result<FieldPath> {
        self.prefix.map_or(Ok(path.clone()), |prefix| prefix.join(path))
    }
}

pub(super) fn parse(spec: DocRef<'_>, policies: ProjectionPolicies, context: &ParseContext) -> Result<Projection> {
    if spec.is_empty() && !policies.empty {
        return Err(Error::location(51272, "projection specification must have at least one field"));
    }
    let mut parser = Parser {
        policies,
        context,
        kind: None,
        id: None,
        is_id_named: false,
        positional: None,
        has_elem_match: false,
        has_slice: false,
        has_meta: false,
    };
    let mut root = Branch::default();
    for element in spec.elements() {
        operation::tick(1)?;
        parser.is_id_named |= element.name == "_id" || element.name.starts_with(b"_id.");
        parser.field(Place { parent: &mut root, prefix: None }, element)?;
    }
    parser.finish(root)
}

impl Parser<'_> {
    fn field(&mut self, place: Place<'_>, element: Element<'_>) -> Result<()> {
        let is_positional = element.name.ends_with(b".$");
        if is_positional && !self.policies.find_operators {
            return Err(Error::location(31324, "Cannot use positional projection in aggregation projection"));
        }
        if element.name.find(".$.").is_some() {
            let reason = "As of 4.4, it's illegal to specify positional operator in the middle of a path.Positional projection may only be used at the end, for example: a.b.$. If the query previously used a form like a.b.$.d, remove the parts following the '$' and the results will be equivalent.";
            return Err(Error::location(31394, reason));
        }
        match element.value {
            Value::Document(_) if is_positional => {
                let reason = "positional projection cannot be used with an expression or sub object";
                Err(Error::location(31271, reason))
            }
            Value::Document(doc) => self.nested(place, element.name, doc),
            value if value.is_number() || matches!(value, Value::Bool(_)) => match (value.is_true(), is_positional) {
                (true, true) => self.positional(place, element.name),
                (true, false) => self.include(place, element.name),
                (false, true) => Err(Error::location(31395, "positional projection cannot be used with exclusion")),
                (false, false) => self.exclude(place, element.name),
            },
            _ if is_positional => Err(Error::location(31308, "positional projection cannot be used with a literal")),
            value => self.literal(place, element.name, value),
        }
    }

    fn include(&mut self, place: Place<'_>, name: &BStr) -> Result<()> {
        let is_root = place.is_root();
        place.parent.insert(&FieldPath::parse(name)?, 0, Child::Include)?;
        if name == "_id" && is_root {
            self.id = Some(true);
            return Ok(());
        }
        self.keep(name)
    }

    /// Notes that a field is kept.
    fn keep(&mut self, name: &BStr) -> Result<()> {
        if self.kind == Some(ProjectionKind::Exclusion) {
            let reason = format!("Cannot do inclusion on field {name} in exclusion projection");
            return Err(Error::location(31253, reason));
        }
        self.kind = Some(ProjectionKind::Inclusion);
        Ok(())
    }

    fn exclude(&mut self, place: Place<'_>, name: &BStr) -> Result<()> {
        let is_root = place.is_root();
        place.parent.insert(&FieldPath::parse(name)?, 0, Child::Exclude)?;
        if name == "_id" && is_root {
            self.id = Some(false);
            return Ok(());
        }
        if self.kind == Some(ProjectionKind::Inclusion) {
            let reason = format!("Cannot do exclusion on field {name} in inclusion projection");
            return Err(Error::location(31254, reason));
        }
        self.kind = Some(ProjectionKind::Exclusion);
        Ok(())
    }

    fn positional(&mut self, place: Place<'_>, name: &BStr) -> Result<()> {
        self.check_computed()?;
        if self.positional.is_some() {
            let reason = "Cannot specify more than one positional projection per query.";
            return Err(Error::location(31276, reason));
        }
        if self.has_elem_match {
            return Err(Error::location(31256, "Cannot specify positional operator and $elemMatch."));
        }
        let path = name.strip_suffix(b".$").unwrap_or_default();
        if path.is_empty() {
            return Err(Error::location(5392900, format!("Projection on field {name} is invalid")));
        }
        let path = FieldPath::parse(path)?;
        let whole = place.whole(&path)?;
        place.parent.insert(&path, 0, Child::Include)?;
        self.positional = Some(whole);
        self.keep(name)
    }

    fn literal(&mut self, place: Place<'_>, name: &BStr, value: Value<'_>) -> Result<()> {
        self.check_computed()?;
        let expression = Expression::parse(value, self.context)?.optimize()?;
        place.parent.insert(&FieldPath::parse(name)?, 0, Child::Computed(expression))?;
        if self.kind == Some(ProjectionKind::Exclusion) {
            let reason = format!("Cannot use an expression {name}: {value} in an exclusion projection");
            return Err(Error::location(31310, reason));
        }
        self.kind = Some(ProjectionKind::Inclusion);
        Ok(())
    }

    /// A document: an operator, or the fields of a field.
    fn nested(&mut self, place: Place<'_>, name: &BStr, doc: DocRef<'_>) -> Result<()> {
        let Some(first) = doc.first() else {
            let reason = "An empty sub-projection is not a valid value. Found empty object at path";
            return Err(Error::location(51270, reason));
        };
        let path = FieldPath::parse(name)?;
        if first.name.starts_with(b"$") && doc.field_count() == 1 {
            if self.is_operator(first.name)? {
                return self.operator(place, &path, first, doc);
            }
            // It was meant to be one, unless a path may have this name.
            let name = first.name.strip_suffix(b".$").unwrap_or(first.name);
            if FieldPath::parse(name).is_err() {
                return Err(Error::location(31325, format!("Unknown expression {}", first.name)));
            }
        }
        let whole = place.whole(&path)?;
        if place.parent.nested_mut(&path).is_none() {
            place.parent.insert(&path, 0, Child::Nested(Branch::default()))?;
        }
        let parent = place.parent.nested_mut(&path).ok_or_else(|| Error::internal("the branch was just made"))?;
        for element in doc.elements() {
            operation::tick(1)?;
            self.field(Place { parent, prefix: Some(&whole) }, element)?;
        }
        Ok(())
    }

    /// True if an operator of this name is known here.
    fn is_operator(&self, name: &BStr) -> Result<bool> {
        match name == "$elemMatch" {
            true if !self.policies.find_operators => {
                Err(Error::new(ErrorCode::InvalidPipelineOperator, "Cannot use $elemMatch in this context"))
            }
            true => Ok(true),
            false => Ok(Expression::has_operator(name)),
        }
    }

    fn operator(&mut self, place: Place<'_>, path: &FieldPath, first: Element<'_>, doc: DocRef<'_>) -> Result<()> {
        self.check_computed()?;
        match (&**first.name, self.policies.find_operators) {
            (b"$slice", true) => {
                let added = find_slice(first.value).and_then(|slice| place.parent.insert(path, 0, Child::Slice(slice)));
                match added {
                    Ok(()) => {
                        self.has_slice = true;
                        Ok(())
                    }
                    // The expression of that name may be meant.
                    Err(refused) => self.expression(place, path, doc).map_err(|error| {
                        error.context(format!(
                            "Invalid $slice syntax. The given syntax {doc} did not match the find() syntax because :: \
                             {refused} :: The given syntax did not match the expression $slice syntax."
                        ))
                    }),
                }
            }
            (b"$elemMatch", true) => self.elem_match(place, path, first.value),
            _ => self.expression(place, path, doc),
        }
    }

    fn expression(&mut self, place: Place<'_>, path: &FieldPath, operator: DocRef<'_>) -> Result<()> {
        // What the query knows of a document goes with either kind.
        let is_meta = operator.first().is_some_and(|first| first.name == "$meta");
        if self.kind == Some(ProjectionKind::Exclusion) && !is_meta {
            let reason = "Cannot use expression other than $meta in exclusion projection";
            return Err(Error::location(31252, reason));
        }
        if !is_meta {
            self.kind = Some(ProjectionKind::Inclusion);
        }
        let expression = Expression::parse(Value::Document(operator), self.context)?.optimize()?;
        self.has_meta |= is_meta;
        place.parent.insert(path, 0, Child::Computed(expression))
    }

    fn elem_match(&mut self, place: Place<'_>, path: &FieldPath, condition: Value<'_>) -> Result<()> {
        if !matches!(condition, Value::Document(_)) {
            let reason = format!("elemMatch: Invalid argument, object required, but got {}", condition.value_type());
            return Err(Error::location(31274, reason));
        }
        if self.positional.is_some() {
            return Err(Error::location(31255, "Cannot specify positional operator and $elemMatch."));
        }
        if path.part_count() > 1 || !place.is_root() {
            return Err(Error::location(31275, "Cannot use $elemMatch projection on a nested field."));
        }
        let filter = doc! { "x": { "$elemMatch": condition } };
        let context = self.context.clone().with_features(Features::NONE);
        let expression = MatchExpression::parse(filter.view(), &context)?;
        place.parent.insert(path, 0, Child::ElemMatch(Box::new(expression)))?;
        self.has_elem_match = true;
        Ok(())
    }

    fn check_computed(&self) -> Result<()> {
        if self.policies.computed {
            return Ok(());
        }
        let reason = "Bad projection specification, cannot include computed fields in this context";
        Err(Error::location(51271, reason))
    }

    /// The kind where no field has said it.
    fn implied_kind(&self) -> ProjectionKind {
        let is_id_kept = self.id == Some(true);
        let is_inclusion = if self.has_slice {
            is_id_kept
        } else if self.has_meta && !self.has_elem_match {
            is_id_kept || !self.policies.find_operators
        } else {
            self.has_elem_match || is_id_kept
        };
        if is_inclusion { ProjectionKind::Inclusion } else { ProjectionKind::Exclusion }
    }

    fn finish(self, mut root: Branch) -> Result<Projection> {
        let kind = self.kind.unwrap_or_else(|| self.implied_kind());
        match kind {
            ProjectionKind::Inclusion if !self.is_id_named => {
                root.insert(&FieldPath::lenient("_id")?, 0, Child::Include)?;
            }
            ProjectionKind::Exclusion if self.id == Some(true) => root.remove(BStr::new("_id")),
            _ => {}
        }
        Ok(Projection { kind, root, positional: self.positional })
    }
}

/// The `$slice` of `find`.
fn find_slice(value: Value<'_>) -> Result<Slice> {
    let whole = |value: Value<'_>| {
        let number = value.as_number()?.truncated_i64();
        Some(number.clamp(i64::from(i32::MIN) + 1, i64::from(i32::MAX)) as i32)
    };
    if let Some(limit) = whole(value) {
        return Ok(Slice { skip: None, limit });
    }
    let Value::Array(array) = value else {
        return Err(Error::location(31273, "$slice only supports numbers and [skip, limit] arrays"));
    };
    let mut values = array.values();
    let (Some(skip), Some(limit), None) = (values.next(), values.next(), values.next()) else {
        return Err(Error::location(31272, "$slice array argument should be of form [skip, limit]"));
    };
    let no_number = |code, name: &str, value: Value<'_>| {
        let found = value.value_type();
        Error::location(code, format!("$slice expects the {name} argument to be a number, got {found}"))
    };
    let skip = whole(skip).ok_or_else(|| no_number(31257, "skip", skip))?;
    let limit = whole(limit).ok_or_else(|| no_number(31258, "limit", limit))?;
    if limit <= 0 {
        return Err(Error::location(31259, format!("$slice limit must be positive, got {limit}")));
    }
    Ok(Slice { skip: Some(skip), limit })
}
