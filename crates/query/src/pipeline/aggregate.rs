//! Planning and running whole pipelines.

use super::optimize::optimize;
use super::parse::chain;
use super::stages::{change_stream, unpack};
use super::{
    DistinctGroup, DocumentSource, ExecutorSource, ListSource, PipelineContext, PipelineParser, Pulled, Pushdown,
    SharedStage, StageProvider, StageRun, StreamState, WhenMatched, WhenNotMatched, Within, parse_pipeline,
    require_collation, view_stages, with_view,
};
use super::{bounded, dependencies};
use crate::executor::{
    BatchOutcome, BatchSource, Collections, DocumentSink, Executor, YieldCause, YieldClock, YieldPolicy,
};
use crate::limits::PlannerLimits;
use crate::memory::Account;
use crate::planner::grouped_plan;
use crate::request::{AggregateRequest, Hint};
use crate::stage::build;
use crate::{CanonicalQuery, QueryEngine, engine};
use pando_base::operation::tick;
use pando_base::{Error, ErrorCode, Namespace, OperationContext, Result};
use pando_catalog::Collection;
use pando_doc::{Array, Doc, INTERNAL_SIZE_BYTES_MAX, too_large};
use pando_expr::matcher::Node;
use pando_expr::metadata::{is_metadata, without_metadata};
use pando_expr::projection::ProjectionKind;
use pando_expr::{MatchExpression, ParseContext, Projection, ProjectionPolicies, SharedCollator};
use pando_operation::Operation;
use pando_script::SharedScript;
use std::sync::Arc;

/// Where the results of a pipeline go.
#[derive(Clone, Debug)]
pub enum OutputStage {
    /// They replace a collection.
    Out {
        /// Which.
        namespace: Namespace,
        /// What the collection is like, if it is to be a time series.
        timeseries: Option<Doc>,
    },
    /// They are merged into one.
    Merge(MergeOutput),
}

/// How results are merged into a collection.
#[derive(Clone, Debug)]
pub struct MergeOutput {
    /// Which.
    pub namespace: Namespace,
    /// What becomes of a document that is there.
    pub matched: WhenMatched,
    /// What becomes of a result that finds none.
    pub not_matched: WhenNotMatched,
    /// `on` and `let` as written, beside what is said above.
    pub specification: Doc,
}

impl OutputStage {
    /// The stage's name.
    pub fn name(&self) -> &'static str {
        match self {
            OutputStage::Out { .. } => "$out",
            OutputStage::Merge(_) => "$merge",
        }
    }

    /// The collection that is written.
    pub fn namespace(&self) -> &Namespace {
        match self {
            OutputStage::Out { namespace, .. } => namespace,
            OutputStage::Merge(merge) => &merge.namespace,
        }
    }
}

/// A pipeline that was planned.
pub struct Aggregation {
    /// What runs.
    pub executor: PipelineExecutor,
    /// Where the results go, if not to the client. The caller writes them.
    pub output: Option<OutputStage>,
}

/// So many steps are counted for a query inside a query: it is read, planned and begun, and may find nothing.
const STEPS_PER_QUERY: u64 = 1024;

/// A pipeline split into what the planner does and what is left.
pub struct PlannedPipeline {
    /// What the planner does.
    pub query: CanonicalQuery,
    /// How many stages that were.
    pub pushed: usize,
}

/// A pipeline being run.
pub struct PipelineExecutor {
    source: Box<dyn DocumentSource>,
    engine: QueryEngine,
    stages: Vec<SharedStage>,
    pushed: usize,
    stashed: Option<Doc>,
    summary: String,
    /// Stages make documents of their own, for which the query at the start does not look at the time.
    clock: YieldClock,
    /// What the stages hold.
    account: Arc<Account>,
    script: Option<SharedScript>,
    /// The change stream that it is.
    stream: Option<StreamEnd>,
}

/// The end of a change stream: where it could be gone on with behind what it has given.
struct StreamEnd {
    state: Arc<StreamState>,
    token: Doc,
    /// The token of the document that did not fit into the last batch.
    stashed: Option<Doc>,
}

impl StreamEnd {
    fn new(state: Arc<StreamState>) -> StreamEnd {
        StreamEnd { token: state.beginning().clone(), state, stashed: None }
    }

    /// A document that came out at the end was given to the client, or is kept for the next batch.
    fn given(&mut self, token: Option<Doc>, is_given: bool) {
        match (token.or_else(|| self.stashed.take()), is_given) {
            (Some(token), true) => self.token = token,
            (token, _) => self.stashed = token,
        }
    }

    /// Nothing more for now, or at all.
    fn exhausted(&mut self) -> Result<()> {
        match self.state.ended_by() {
            Some(token) => self.token = token,
            None => self.state.high_water_mark()?.into_iter().for_each(|token| self.token = token),
        }
        Ok(())
    }
}

impl PipelineExecutor {
    /// The stages behind the query.
    pub fn stages(&self) -> &[SharedStage] {
        self.stages.get(self.pushed..).unwrap_or_default()
    }

    /// True if the query at its start is a `$geoNear`.
    pub fn is_search_by_distance(&self) -> bool {
        self.stages.first().is_some_and(|first| matches!(first.pushdown(), Pushdown::GeoNear(_)))
    }

    /// The query at its start.
    pub fn executor(&self) -> Option<&crate::executor::Executor> {
        self.source.executor()
    }

    /// Tries plans of the query at its start until one is chosen.
    pub(crate) fn choose_plan(&mut self, operation: &mut Operation) -> Result<()> {
        self.source.executor_mut().map_or(Ok(()), |executor| executor.choose_plan(operation))
    }

    /// What each of these stages has done so far.
    pub fn runs(&self) -> Vec<StageRun> {
        let mut runs = Vec::new();
        self.source.tell(&mut runs);
        runs
    }
}

impl BatchSource for PipelineExecutor {
    fn next_batch(&mut self, operation: &mut Operation, sink: &mut dyn DocumentSink) -> Result<BatchOutcome> {
        if let Some(document) = self.stashed.take() {
            if !sink.offer(&document) {
                self.stashed = Some(document);
                return Ok(BatchOutcome::Full);
            }
            if let Some(stream) = &mut self.stream {
                stream.given(None, true);
            }
        }
        let mut context = PipelineContext { operation, engine: &self.engine };
        while !sink.is_full() {
            match self.source.next(&mut context)? {
                Pulled::Document(document) => {
                    let document = without_metadata(document.view()).unwrap_or(document);
                    let token = self.stream.as_ref().map(|stream| stream.state.token_of(&document)).transpose()?;
                    if document.size_bytes() > INTERNAL_SIZE_BYTES_MAX {
                        if token.is_some() {
                            self.engine.counters.event_too_large();
                        }
                        return Err(too_large(document.size_bytes(), INTERNAL_SIZE_BYTES_MAX));
                    }
                    // The reply has the token of its last document once more.
                    sink.reserve(token.as_ref().map_or(0, Doc::size_bytes));
                    let is_given = sink.offer(&document);
                    if let Some(stream) = &mut self.stream {
                        stream.given(token, is_given);
                    }
                    if !is_given {
                        self.stashed = Some(document);
                        return Ok(BatchOutcome::Full);
                    }
                    if self.clock.is_time(context.operation)? {
                        return Ok(BatchOutcome::Yield(YieldCause::Time));
                    }
                }
                Pulled::Exhausted => {
                    self.stream.as_mut().map_or(Ok(()), StreamEnd::exhausted)?;
                    return Ok(BatchOutcome::Exhausted);
                }
                Pulled::Yield(cause) => return Ok(BatchOutcome::Yield(cause)),
            }
        }
        Ok(BatchOutcome::Full)
    }

    fn is_invalidated(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.state.ended_by().is_some())
    }

    fn resume_token(&self) -> Option<Doc> {
        self.stream.as_ref().map(|stream| stream.token.clone())
    }

    fn save(&mut self) {
        self.source.save();
    }

    fn restore(&mut self, operation: &mut Operation, collections: &dyn Collections) -> Result<()> {
        self.clock.restart(operation);
        self.source.restore(operation, collections)
    }

    fn plan_summary(&self) -> &str {
        &self.summary
    }

    fn runs_scripts(&self) -> bool {
        self.script.as_ref().is_some_and(|script| script.is_used())
    }

    fn tell(&self, context: &OperationContext) {
        let told = context.statistics().memory_peak_bytes.get();
        context.statistics().memory_peak_bytes.add(self.account.peak_bytes().saturating_sub(told));
        let sorts = self.stages().iter().any(|stage| stage.name() == "$sort");
        if let Some(executor) = self.executor() {
            let used_disk = self.runs().iter().any(|run| run.facts.used_disk);
            executor.tell_plan(context, sorts, used_disk);
        }
    }
}

impl QueryEngine {
    /// Plans an aggregation. Opens the operation's snapshot; views are followed.
    pub fn aggregate(
        &self,
        operation: &mut Operation,
        request: &AggregateRequest,
        provider: Option<Arc<dyn StageProvider>>,
    ) -> Result<Aggregation> {
        self.collections.check_pipeline(&request.namespace, &request.pipeline)?;
        let collection = self.collections.open(operation, &request.namespace)?;
        let is_stream = is_change_stream(&request.pipeline);
        if collection.is_none()
            && !asks_about_namespace(&request.pipeline)
            && let Some(view) = self.collections.view(&request.namespace)?
        {
            if is_stream {
                let reason = match view.is_timeseries {
                    true => format!("Cannot run aggregation on timeseries with namespace {}", request.namespace),
                    false => format!("Namespace {} is a view, not a collection", request.namespace),
                };
                return Err(Error::new(ErrorCode::CommandNotSupportedOnView, reason));
            }
            return self.aggregate(operation, &with_view(request, &view)?, provider);
        }
        // A stream may begin before the collection that has this name now: it takes nothing from it.
        let collection = collection.filter(|_| !is_stream);
        let known = collection.as_deref();
        let mut context = self.parse_context(operation, &request.collation, &request.variables, known)?;
        context.is_map_reduce = request.is_map_reduce;
        context.javascript_scope.clone_from(&request.javascript_scope);
        let parser = self.parser_of(request, context, provider);
        let stages = change_stream::completed(parse_pipeline(&request.pipeline, &parser)?)?;
        let mut stages = unpack::rewrite(optimize(stages), operation, known)?;
        let stream = stages.first().and_then(|first| first.stream()).map(|(_, state)| StreamEnd::new(state));
        let output = stages.last().and_then(|stage| stage.output());
        let mut planned = plan_pipeline(&request.namespace, &stages);
        self.search_by_distance(&stages, &mut planned.query, collection.as_deref())?;
        planned.query.hint = request.hint.clone();
        planned.query.natural = request.hint.natural();
        planned.query.allow_disk_use = request.allow_disk_use;
        planned.query.collator = parser.context.collator.clone();
        planned.query.metadata = parser.context.metadata.get();
        let pushed = planned.pushed;
        let (source, summary) = self.start_pipeline(operation, &mut stages, planned, collection.as_ref())?;
        let (engine, clock) = (self.clone(), YieldClock::new(self.yield_policy()));
        let (script, account) = (parser.context.script.clone(), Arc::clone(&parser.resources.account));
        let executor =
            PipelineExecutor { source, engine, stages, pushed, stashed: None, summary, clock, account, script, stream };
        Ok(Aggregation { executor, output })
    }

    /// Refuses a pipeline that cannot be read.
    pub fn check_pipeline(
        &self,
        operation: &Operation,
        request: &AggregateRequest,
        provider: Option<Arc<dyn StageProvider>>,
    ) -> Result<()> {
        let mut context = self.parse_context(operation, &request.collation, &request.variables, None)?;
        // Who asks is known when what is checked now is run.
        context.user_roles = Some(Array::new());
        let stages = parse_pipeline(&request.pipeline, &self.parser_of(request, context, provider))?;
        change_stream::completed(stages).map(|_| ())
    }

    /// What reads a request's own pipeline.
    fn parser_of(
        &self,
        request: &AggregateRequest,
        context: ParseContext,
        provider: Option<Arc<dyn StageProvider>>,
    ) -> PipelineParser {
        PipelineParser {
            context,
            namespace: request.namespace.clone(),
            provider,
            resources: self.spilling.resources(request.allow_disk_use),
            within: Within::Nothing,
            depth: 0,
            seen: request.seen.clone(),
        }
    }

    /// The same engine for queries inside queries, which do not yield for time: the outer one does.
    pub(crate) fn patient(&self) -> QueryEngine {
        QueryEngine { yield_override: Some(YieldPolicy::NEVER), ..self.clone() }
    }

    /// The documents that stages make of a collection or view, inside another pipeline, whose collation they have.
    pub(crate) fn pipeline_source(
        &self,
        operation: &mut Operation,
        namespace: &Namespace,
        stages: &[SharedStage],
        collator: &Option<SharedCollator>,
    ) -> Result<Box<dyn DocumentSource>> {
        tick(STEPS_PER_QUERY)?;
        if stages.first().is_some_and(|first| first.is_initial()) {
            return chain(stages, Box::new(ListSource::default()));
        }
        let collection = self.collections.open(operation, namespace)?;
        if collection.is_none()
            && let Some(view) = self.collections.view(namespace)?
        {
            let mut context = self.parse_context(operation, &Doc::new(), &Doc::new(), None)?;
            context.collator = collator.clone();
            let parser = PipelineParser {
                context,
                namespace: view.namespace.clone(),
                provider: None,
                resources: self.spilling.resources(None),
                within: Within::Server,
                depth: 0,
                // What a view names does not matter to who may read the view.
                seen: None,
            };
            require_collation(&view, collator.as_ref().map(|collator| collator.specification()))?;
            let below: Vec<Doc> = view_stages(&view).collect();
            let mut all = parse_pipeline(&below, &parser)?;
            all.extend(stages.iter().cloned());
            let all = unpack::expanded(all, &parser)?;
            return self.pipeline_source(operation, &view.namespace, &all, collator);
        }
        let stages = &mut unpack::rewrite(optimize(stages.to_vec()), operation, collection.as_deref())?;
        let mut planned = plan_pipeline(namespace, stages);
        planned.query.collator = collator.clone();
        if stages.first().is_some_and(|first| matches!(first.pushdown(), Pushdown::GeoNear(_))) {
            self.search_by_distance(stages, &mut planned.query, collection.as_deref())?;
        }
        self.start_pipeline(operation, stages, planned, collection.as_ref()).map(|(source, _)| source)
    }

    /// Makes the query that a `$geoNear` in front is.
    fn search_by_distance(
        &self,
        stages: &[SharedStage],
        query: &mut CanonicalQuery,
        collection: Option<&Collection>,
    ) -> Result<()> {
        let Some(Pushdown::GeoNear(search)) = stages.first().map(|first| first.pushdown()) else { return Ok(()) };
        let filter = search.filter(&query.namespace, collection)?;
        let parsed = CanonicalQuery::of_filter(&query.namespace, filter.view(), &search.context())?;
        query.filter = parsed.filter;
        query.script = parsed.script;
        query.near_output = Some(search.output());
        Ok(())
    }

    fn start_pipeline(
        &self,
        operation: &mut Operation,
        stages: &mut Vec<SharedStage>,
        planned: PlannedPipeline,
        collection: Option<&Arc<Collection>>,
    ) -> Result<(Box<dyn DocumentSource>, String)> {
        if stages.first().is_some_and(|first| first.is_initial()) {
            let source = chain(stages, Box::new(ListSource::default()))?;
            return Ok((source, String::new()));
        }
        let mut query = planned.query;
        let group = stages.get(planned.pushed).and_then(|stage| stage.distinct_group());
        let grouped = match (collection, &group) {
            (Some(collection), Some(group)) => self.grouped(&mut query, collection, group)?,
            _ => None,
        };
        if let (Some(_), Some(group), Some(place)) = (&grouped, group, stages.get_mut(planned.pushed)) {
            *place = group.stage;
        }
        let rest = stages.get(planned.pushed..).unwrap_or_default();
        let is_unordered = query.sort.is_none() && query.limit.is_none() && query.skip == 0;
        query.bucket_order = match collection.filter(|_| is_unordered) {
            Some(collection) => bounded::wanted_order(rest, collection),
            None => None,
        };
        let order = query.bucket_order.clone();
        let mut executor = match grouped {
            Some(executor) => executor,
            None => self.run(&Arc::new(query), collection, |root, _| Ok(root))?,
        };
        if let Some(order) = order
            && let Some(better) = bounded::bounded(rest, &mut executor, &order, operation)?
        {
            stages.truncate(planned.pushed);
            stages.extend(better);
        }
        let rest = stages.get(planned.pushed..).unwrap_or_default();
        let summary = executor.plan_summary().to_owned();
        let source = chain(rest, Box::new(ExecutorSource(Box::new(executor))))?;
        Ok((source, summary))
    }
}

impl QueryEngine {
    /// A scan that gives one document for each group, if an index allows it.
    fn grouped(
        &self,
        query: &mut CanonicalQuery,
        collection: &Arc<Collection>,
        group: &DistinctGroup,
    ) -> Result<Option<Executor>> {
        let sort = query.sort.clone();
        if group.is_last {
            let Some(sort) = &sort else { return Ok(None) };
            query.sort = Some(sort.reversed());
        }
        let filter = self.index_filter(query, collection);
        let plan =
            grouped_plan(query, collection, filter.as_deref(), &group.path, PlannerLimits::of(&self.parameters))?;
        let Some(plan) = plan else {
            query.sort = sort;
            return Ok(None);
        };
        let context = self.build_context(collection, &query.filter, query.collator.clone());
        let root = build(&plan, &context)?;
        let executor = self.executor(root, &query.namespace, Some(collection), &plan)?;
        Ok(Some(executor.for_query(&Arc::new(query.clone()))))
    }
}

/// True for a pipeline that is about the collection or view itself, not about its documents.
fn asks_about_namespace(pipeline: &[Doc]) -> bool {
    let first = pipeline.first().and_then(|stage| stage.view().first());
    first.is_some_and(|stage| stage.name == "$collStats")
}

/// True for a pipeline that begins with `$changeStream`.
pub fn is_change_stream(pipeline: &[Doc]) -> bool {
    let first = pipeline.first().and_then(|stage| stage.view().first());
    first.is_some_and(|stage| stage.name == "$changeStream")
}

/// Gives the planner what it can do of the first stages: filters, then an order, then a limit.
pub(super) fn plan_pipeline(namespace: &Namespace, stages: &[SharedStage]) -> PlannedPipeline {
    let mut filters: Vec<Arc<MatchExpression>> = Vec::new();
    let mut query = CanonicalQuery::of_expression(namespace, Arc::new(engine::matches_all()));
    query.hint = Hint::None;
    if stages.first().is_some_and(|first| matches!(first.pushdown(), Pushdown::GeoNear(_))) {
        return PlannedPipeline { query, pushed: 1 };
    }
    let mut pushed = 0;
    let leaves_limits = pando_expr::DISABLE_PIPELINE_OPTIMIZATION.should_fail();
    for stage in stages {
        match stage.pushdown() {
            Pushdown::Skip(_) | Pushdown::Limit(_) if leaves_limits => break,
            Pushdown::Match(filter) if query.sort.is_none() && query.limit.is_none() && query.skip == 0 => {
                filters.push(Arc::clone(filter));
            }
            Pushdown::Sort(pattern) if query.sort.is_none() && query.limit.is_none() && query.skip == 0 => {
                query.sort = Some(pattern.clone());
            }
            Pushdown::Skip(count) if query.limit.is_none() => query.skip = query.skip.saturating_add(count),
            Pushdown::Limit(count) => query.limit = Some(query.limit.map_or(count, |limit| limit.min(count))),
            _ => break,
        }
        pushed += 1;
    }
    if let Some(filter) = combined(&filters) {
        query.collator = filter.collator().cloned();
        query.filter = filter;
    }
    let is_group = stages.get(pushed).is_some_and(|next| next.grouping().is_some());
    query.wants_all = is_group && query.limit.is_none();
    pushed += push_projection(&mut query, stages.get(pushed..).unwrap_or_default());
    PlannedPipeline { query, pushed }
}

/// Tells the query which fields are wanted: a `$project` that comes first is its own, else what the stages look at helps to choose a plan.
/// Says how many stages that were.
fn push_projection(query: &mut CanonicalQuery, stages: &[SharedStage]) -> usize {
    // An expression must not see documents that a limit leaves out.
    let takes_all = query.sort.is_none() && query.limit.is_none() && query.skip == 0;
    let mut needed = dependencies::of_stages(stages);
    let has_metadata = needed.as_ref().is_some_and(|paths| paths.iter().any(|path| is_metadata(path.text())));
    if has_metadata {
        // What is not in the document does not help to choose a plan.
        needed = None;
    }
    if needed.as_ref().is_some_and(Vec::is_empty) {
        query.is_count = true;
        return 0;
    }
    let first = match stages.first().map(|first| first.pushdown()) {
        Some(Pushdown::Project(projection)) if takes_all || !projection.has_computed() => Some(projection),
        _ => None,
    };
    let is_inclusion = |projection: &Projection| projection.kind() == ProjectionKind::Inclusion;
    if let Some(projection) = first.filter(|projection| is_inclusion(projection)) {
        return push_project(query, projection);
    }
    match needed {
        Some(paths) => {
            let wanted = dependencies::projection(&paths);
            let parsed = Projection::parse(wanted.view(), ProjectionPolicies::FIND, &ParseContext::default());
            if let Ok(projection) = parsed {
                query.projection = Some(Arc::new(projection));
                query.projection_document = wanted;
                query.is_projection_advice = true;
            }
        }
        None => return first.map_or(0, |projection| push_project(query, projection)),
    }
    0
}

fn push_project(query: &mut CanonicalQuery, projection: &Arc<Projection>) -> usize {
    query.projection = Some(Arc::clone(projection));
    query.projection_document = projection.to_doc();
    1
}

fn combined(filters: &[Arc<MatchExpression>]) -> Option<Arc<MatchExpression>> {
    match filters {
        [] => None,
        [only] => Some(Arc::clone(only)),
        several => {
            let parts: Vec<Node> = several.iter().map(|filter| filter.root().clone()).collect();
            let collator = several.first().and_then(|first| first.collator().cloned());
            Some(Arc::new(MatchExpression::from_node(Node::And(parts), collator).optimize()))
        }
    }
}
