//! From a specification to the tree.

use super::tree::{Branch, Child};
use super::{Projection, ProjectionKind, ProjectionPolicies, Slice};
use crate::{Expression, Features, MatchExpression, ParseContext};
use bstr::{BStr, ByteSlice};
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{DocRef, Element, FieldPath, Value, doc};

struct Parser<'c> {
    policies: ProjectionPolicies,
    context: &'c ParseContext,
    root: Branch,
    /// Decided by the first field that is kept or dropped, `_id` aside.
    kind: Option<ProjectionKind>,
    id: Option<bool>,
    positional: Option<FieldPath>,
    has_elem_match: bool,
    /// True if something is computed that only an inclusion may have.
    has_computed: bool,
}

pub(super) fn parse(spec: DocRef<'_>, policies: ProjectionPolicies, context: &ParseContext) -> Result<Projection> {
    if spec.is_empty() && !policies.empty {
        return Err(Error::location(51272, "projection specification must have at least one field"));
    }
    let mut parser = Parser {
        policies,
        context,
        root: Branch::default(),
        kind: None,
        id: None,
        positional: None,
        has_elem_match: false,
        has_computed: false,
    };
    for element in spec.elements() {
        parser.field(None, element)?;
    }
    parser.finish()
}

pub(super) fn parse_add_fields(spec: DocRef<'_>, context: &ParseContext) -> Result<Projection> {
    let mut paths = Vec::new();
    spec.elements().try_for_each(|element| add_path(&mut paths, None, element))?;
    let mut root = Branch::default();
    for element in spec.elements() {
        add_field(&mut root, None, element, context)?;
    }
    Ok(Projection { kind: ProjectionKind::AddFields, root, positional: None })
}

fn joined(prefix: Option<&FieldPath>, name: &BStr) -> Result<FieldPath> {
    let path = FieldPath::parse(name)?;
    prefix.map_or(Ok(path.clone()), |prefix| prefix.join(&path))
}

/// True if the document is an operator: its first name begins with a dollar and is not one of those that references have.
fn is_operator(doc: DocRef<'_>) -> bool {
    let is_name = |name: &BStr| name.starts_with(b"$") && !["$ref", "$id", "$db"].iter().any(|known| name == *known);
    doc.raw_elements().next().is_some_and(|first| is_name(first.name))
}

/// Notes the paths that are set. None may be another, or lead to it.
fn add_path(seen: &mut Vec<FieldPath>, prefix: Option<&FieldPath>, element: Element<'_>) -> Result<()> {
    let path = joined(prefix, element.name)?;
    if let Value::Document(doc) = element.value
        && !doc.is_empty()
    {
        for nested in doc.elements() {
            if nested.name.starts_with(b"$") {
                let count = doc.field_count();
                if count != 1 {
                    let reason = format!(
                        "an expression specification must contain exactly one field, the name of the expression. Found \
                         {count} fields in {doc}"
                    );
                    return Err(Error::location(40181, reason));
                }
                return note_path(seen, path);
            }
            if nested.name.contains(&b'.') {
                let reason = format!("cannot use dotted field name '{}' in a sub object", nested.name);
                return Err(Error::location(40183, reason));
            }
            add_path(seen, Some(&path), nested)?;
        }
        return Ok(());
    }
    note_path(seen, path)
}

fn note_path(seen: &mut Vec<FieldPath>, path: FieldPath) -> Result<()> {
    // In order, those that lead to others stand directly before one of them.
    let place = match seen.binary_search_by(|other| other.parts().cmp(path.parts())) {
        Ok(place) => return Err(conflicting(&path, seen.get(place))),
        Err(place) => place,
    };
    let (before, after) = (place.checked_sub(1).and_then(|before| seen.get(before)), seen.get(place));
    if before.is_some_and(|before| before.is_prefix_of(&path)) {
        return Err(conflicting(&path, before));
    }
    if after.is_some_and(|after| path.is_prefix_of(after)) {
        return Err(conflicting(&path, after));
    }
    seen.insert(place, path);
    Ok(())
}

fn conflicting(path: &FieldPath, other: Option<&FieldPath>) -> Error {
    let other = other.unwrap_or(path);
    let reason = format!("specification contains two conflicting paths. Cannot specify both '{path}' and '{other}'");
    Error::location(40176, reason)
}

fn add_field(
    root: &mut Branch,
    prefix: Option<&FieldPath>,
    element: Element<'_>,
    context: &ParseContext,
) -> Result<()> {
    let path = joined(prefix, element.name)?;
    match element.value {
        Value::Document(doc) if !doc.is_empty() && !is_operator(doc) => {
            doc.elements().try_for_each(|element| add_field(root, Some(&path), element, context))
        }
        value => root.insert(&path, 0, Child::Computed(Expression::parse(value, context)?.optimize()?)),
    }
}

impl Parser<'_> {
    fn field(&mut self, prefix: Option<&FieldPath>, element: Element<'_>) -> Result<()> {
        if self.policies.find_operators
            && let Some(path) = positional_path(element.name)?
        {
            return self.positional(prefix, path, element);
        }
        let path = joined(prefix, element.name)?;
        match element.value {
            Value::Bool(truth) => self.plain(path, truth),
            value if value.is_number() => self.plain(path, value.is_true()),
            Value::Document(doc) if doc.is_empty() => {
                Err(Error::location(51270, "An empty sub-projection is not a valid value. Found empty object at path"))
            }
            Value::Document(doc) if !is_operator(doc) => {
                doc.elements().try_for_each(|element| self.field(Some(&path), element))
            }
            Value::Document(doc) => self.operator(path, doc),
            value => self.computed(path, value),
        }
    }

    fn plain(&mut self, path: FieldPath, is_kept: bool) -> Result<()> {
        if path.text() == "_id" {
            self.id = Some(is_kept);
            return Ok(());
        }
        let kind = if is_kept { ProjectionKind::Inclusion } else { ProjectionKind::Exclusion };
        match (self.kind, kind) {
            (Some(ProjectionKind::Inclusion), ProjectionKind::Exclusion) => {
                let reason = format!("Cannot do exclusion on field {path} in inclusion projection");
                return Err(Error::location(31254, reason));
            }
            (Some(ProjectionKind::Exclusion), ProjectionKind::Inclusion) => {
                let reason = format!("Cannot do inclusion on field {path} in exclusion projection");
                return Err(Error::location(31253, reason));
            }
            _ => self.kind = Some(kind),
        }
        self.root.insert(&path, 0, if is_kept { Child::Include } else { Child::Exclude })
    }

    fn computed(&mut self, path: FieldPath, value: Value<'_>) -> Result<()> {
        if !self.policies.computed {
            let reason = "Bad projection specification, cannot include computed fields in this context";
            return Err(Error::new(ErrorCode::FailedToParse, reason));
        }
        // Of those that only a find has, the expressions themselves say that they do not know them.
        if let Value::Document(operator) = value
            && let Some(first) = operator.first().filter(|_| is_operator(operator))
            && !Expression::has_operator(first.name)
            && first.name != "$elemMatch"
        {
            return Err(Error::location(31325, format!("Unknown expression {}", first.name)));
        }
        let expression = Expression::parse(value, self.context)?;
        self.has_computed = true;
        self.root.insert(&path, 0, Child::Computed(expression.optimize()?))
    }

    fn operator(&mut self, path: FieldPath, doc: DocRef<'_>) -> Result<()> {
        let first = doc.first().map(|first| (first.name, first.value));
        match first {
            Some((name, value)) if self.policies.find_operators && name == "$slice" => match find_slice(value)? {
                Some(slice) => self.root.insert(&path, 0, Child::Slice(slice)),
                None => self.computed(path, Value::Document(doc)),
            },
            Some((name, value)) if self.policies.find_operators && name == "$elemMatch" => self.elem_match(path, value),
            Some((name, _)) if name == "$meta" => self.meta(path, doc),
            _ => self.computed(path, Value::Document(doc)),
        }
    }

    /// What the query knows of a document. In a find it is added to whatever the projection keeps.
    fn meta(&mut self, path: FieldPath, operator: DocRef<'_>) -> Result<()> {
        if !self.policies.find_operators {
            return self.computed(path, Value::Document(operator));
        }
        let expression = Expression::parse(Value::Document(operator), self.context)?;
        self.root.insert(&path, 0, Child::Computed(expression))
    }

    fn elem_match(&mut self, path: FieldPath, condition: Value<'_>) -> Result<()> {
        if !matches!(condition, Value::Document(_)) {
            let reason = format!("elemMatch: Invalid argument, object required, but got {}", condition.value_type());
            return Err(Error::location(31274, reason));
        }
        if self.positional.is_some() {
            return Err(Error::location(31255, "Cannot specify positional operator and $elemMatch."));
        }
        if path.part_count() > 1 {
            return Err(Error::location(31275, "Cannot use $elemMatch projection on a nested field."));
        }
        let filter = doc! { "x": { "$elemMatch": condition } };
        let context = self.context.clone().with_features(Features::NONE);
        let expression = MatchExpression::parse(filter.view(), &context)?;
        self.has_elem_match = true;
        self.has_computed = true;
        self.root.insert(&path, 0, Child::ElemMatch(Box::new(expression)))
    }

    fn positional(&mut self, prefix: Option<&FieldPath>, path: FieldPath, element: Element<'_>) -> Result<()> {
        let path = prefix.map_or(Ok(path.clone()), |prefix| prefix.join(&path))?;
        if self.positional.is_some() {
            let reason = "Cannot specify more than one positional projection per query.";
            return Err(Error::location(31276, reason));
        }
        if self.has_elem_match {
            return Err(Error::location(31256, "Cannot specify positional operator and $elemMatch."));
        }
        let is_kept = match element.value {
            Value::Bool(truth) => truth,
            value if value.is_number() => value.is_true(),
            _ => {
                let reason = "positional projection must be an inclusion";
                return Err(Error::location(31271, reason));
            }
        };
        if !is_kept || self.kind == Some(ProjectionKind::Exclusion) {
            return Err(Error::location(31395, "positional projection cannot be used with exclusion"));
        }
        self.kind = Some(ProjectionKind::Inclusion);
        self.root.insert(&path, 0, Child::Include)?;
        self.positional = Some(path);
        Ok(())
    }

    fn finish(mut self) -> Result<Projection> {
        if self.positional.is_some() && self.kind == Some(ProjectionKind::Exclusion) {
            return Err(Error::location(31395, "positional projection cannot be used with exclusion"));
        }
        let kind = match (self.kind, self.id) {
            (Some(ProjectionKind::Exclusion), _) if self.has_computed => {
                let reason = "Cannot use expression other than $meta in exclusion projection";
                return Err(Error::location(31252, reason));
            }
            (Some(kind), _) => kind,
            (None, _) if self.has_computed => ProjectionKind::Inclusion,
            (None, Some(true)) => ProjectionKind::Inclusion,
            (None, _) => ProjectionKind::Exclusion,
        };
        let id = FieldPath::lenient("_id")?;
        let has_id = self.root.get(BStr::new("_id")).is_some();
        match (kind, self.id) {
            (ProjectionKind::Inclusion, Some(true)) => self.root.insert(&id, 0, Child::Include)?,
            (ProjectionKind::Inclusion, None) if !has_id => self.root.insert(&id, 0, Child::Include)?,
            (_, Some(false)) => self.root.insert(&id, 0, Child::Exclude)?,
            _ => {}
        }
        Ok(Projection { kind, root: self.root, positional: self.positional })
    }
}

/// The path before a final `.$`; none if the operator is not there.
fn positional_path(name: &BStr) -> Result<Option<FieldPath>> {
    let is_positional = name.split_str(".").any(|part| part == b"$");
    if !is_positional {
        return Ok(None);
    }
    match name.strip_suffix(b".$") {
        Some([]) => Err(Error::location(5392900, "Projection on the positional operator '.$' needs a field before it")),
        Some(path) if !path.split_str(".").any(|part| part == b"$") => Ok(Some(FieldPath::parse(path)?)),
        _ => {
            let reason = "As of 4.4, it's illegal to specify positional operator in the middle of a path.Positional projection may only be used at the end, for example: a.b.$. If the query previously used a form like a.b.$.d, remove the parts following the '$' and the results will be equivalent.";
            Err(Error::location(31394, reason))
        }
    }
}

/// The `$slice` of `find`; none if it is the expression of that name.
fn find_slice(value: Value<'_>) -> Result<Option<Slice>> {
    let whole = |value: Value<'_>| {
        let number = value.as_number()?.truncated_i64();
        Some(number.clamp(i64::from(i32::MIN) + 1, i64::from(i32::MAX)) as i32)
    };
    match value {
        Value::Array(array) => {
            let mut values = array.values();
            match (values.next(), values.next(), values.next()) {
                (Some(skip), Some(limit), None) => match (whole(skip), whole(limit)) {
                    (Some(_), Some(limit)) if limit <= 0 => {
                        let reason = "First argument to $slice must be an array, but is of type: int";
                        Err(Error::location(28724, reason))
                    }
                    (Some(skip), Some(limit)) => Ok(Some(Slice { skip: Some(skip), limit })),
                    _ => Ok(None),
                },
                (_, Some(_), Some(_)) => Ok(None),
                _ => {
                    let reason = "Invalid $slice syntax. The given syntax did not match the find() syntax because :: Location31272: $slice array argument should be of form [skip, limit]";
                    Err(Error::location(28667, reason))
                }
            }
        }
        value => match whole(value) {
            Some(limit) => Ok(Some(Slice { skip: None, limit })),
            None => {
                let reason = "Invalid $slice syntax. The given syntax did not match the find() syntax because :: Location31273: $slice only supports numbers and [skip, limit] arrays";
                Err(Error::location(28667, reason))
            }
        },
    }
}
