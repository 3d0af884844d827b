//! Explaining each kind of request.

use super::Verbosity;
use super::render::{OnTop, Shown, count_stage, execution_section, execution_stats, planner_section};
use crate::executor::{CountingSink, DocumentSink, Executor, drive};
use crate::pipeline::{PipelineExecutor, StageFacts, StageProvider, StageRun};
use crate::plan_cache::{cache_key, indexes_of};
use crate::request::{AggregateRequest, CountRequest, DeleteRequest, DistinctRequest, FindRequest, UpdateRequest};
use crate::shape::{plan_cache_key, query_hash, shape};
use crate::stage::{Counts, MultiPlanStage, ReturnedImage, Step, build};
use crate::timeseries::{Deletion, PlannedDeletion};
use crate::{CanonicalQuery, FindPlan, QueryEngine, engine};
use pando_base::{Category, Namespace, Result};
use pando_catalog::Collection;
use pando_doc::{ArrayBuilder, Doc, DocBuilder, DocRef, doc};
use pando_operation::Operation;
use std::sync::Arc;

/// What a request without sort and projection looks for.
struct Filter<'a> {
    namespace: &'a Namespace,
    filter: &'a Doc,
    collation: &'a Doc,
    variables: &'a Doc,
}

impl QueryEngine {
    /// Explains a find; on a view, the aggregation that it is.
    pub async fn explain_find(
        &self,
        operation: &mut Operation,
        request: &FindRequest,
        verbosity: Verbosity,
    ) -> Result<Doc> {
        let mut executor = match self.find(operation, request)? {
            FindPlan::Executor(executor) => executor,
            FindPlan::View(_) => {
                let aggregate = crate::pipeline::find_as_pipeline(request)?;
                return self.explain_aggregate(operation, &aggregate, None, verbosity).await;
            }
        };
        let collection = executor.collection().cloned();
        let context = self.parse_context(operation, &request.collation, &request.variables, collection.as_deref())?;
        let query = CanonicalQuery::of_find(request, &context)?;
        let shown = self.shown(&request.namespace, &query, collection.as_deref(), &executor.usable_indexes(), None);
        self.explain(operation, &mut executor, &shown, verbosity).await
    }

    /// Explains a count.
    pub async fn explain_count(
        &self,
        operation: &mut Operation,
        request: &CountRequest,
        verbosity: Verbosity,
    ) -> Result<Doc> {
        request.validate()?;
        let collection = self.collections.open(operation, &request.namespace)?;
        let known = self.known_count(operation, request, collection.as_deref())?;
        if let Some(count) = known.filter(|_| collection.is_some()) {
            return Ok(fast_count(&request.namespace, count, skipped(request), verbosity));
        }
        let mut executor = self.count_executor(operation, request, collection.as_ref())?;
        let on_top = Some(OnTop::Count { skipped: skipped(request) });
        let variables = &Doc::new();
        let filter =
            Filter { namespace: &request.namespace, filter: &request.filter, collation: &request.collation, variables };
        self.explain_filter(operation, &mut executor, filter, on_top, verbosity).await
    }

    /// Explains a look for distinct values. Views are the caller's business.
    pub async fn explain_distinct(
        &self,
        operation: &mut Operation,
        request: &DistinctRequest,
        verbosity: Verbosity,
    ) -> Result<Doc> {
        request.validate()?;
        let collection = self.collections.open(operation, &request.namespace)?;
        let context =
            self.parse_context(operation, &request.collation, &Doc::new(), collection.as_deref())?.without_clocks();
        let plan = match collection.as_deref() {
            Some(collection) => self.distinct_plan(request, collection, &context)?,
            None => None,
        };
        let (Some(collection), Some(plan)) = (&collection, plan) else {
            let mut find = FindRequest::new(request.namespace.clone()).with_filter(request.filter.clone());
            (find.hint, find.collation) = (request.hint.clone(), request.collation.clone());
            return self.explain_find(operation, &find, verbosity).await;
        };
        let context = self.build_context(collection, &Arc::new(engine::matches_all()), None);
        let (root, namespace) = (build(&plan, &context)?, request.namespace.clone());
        let known = Some(Arc::clone(collection));
        let mut executor = Executor::new(root, namespace, known, self.yield_policy(), plan.summary());
        let on_top = (!plan.is_fetched()).then(|| OnTop::Projection {
            stage: if request.key.contains('.') { "PROJECTION_DEFAULT" } else { "PROJECTION_COVERED" },
            projection: doc! { (request.key.as_str()): 1, "_id": 0 },
        });
        let variables = &Doc::new();
        let filter =
            Filter { namespace: &request.namespace, filter: &request.filter, collation: &request.collation, variables };
        self.explain_filter(operation, &mut executor, filter, on_top, verbosity).await
    }

    /// Explains an update; nothing is written.
    pub async fn explain_update(
        &self,
        operation: &mut Operation,
        request: &UpdateRequest,
        verbosity: Verbosity,
    ) -> Result<Doc> {
        request.validate()?;
        let collection = self.collections.open(operation, &request.namespace)?;
        let known = collection.as_deref();
        let parsed = self.parse_update(operation, request, known, ReturnedImage::Nothing, None)?;
        let mut executor = self.update_executor(request, &parsed, collection.as_ref(), true)?;
        let filter = Filter {
            namespace: &request.namespace,
            filter: &request.filter,
            collation: &request.collation,
            variables: &request.variables,
        };
        self.explain_filter(operation, &mut executor, filter, None, verbosity).await
    }

    /// Explains a delete; nothing is written.
    pub async fn explain_delete(
        &self,
        operation: &mut Operation,
        request: &DeleteRequest,
        verbosity: Verbosity,
    ) -> Result<Doc> {
        let collection = self.collections.open(operation, &request.namespace)?;
        let mut executor = self.delete_executor(operation, request, collection.as_ref(), false, None, true)?;
        let filter = Filter {
            namespace: &request.namespace,
            filter: &request.filter,
            collation: &request.collation,
            variables: &request.variables,
        };
        self.explain_filter(operation, &mut executor, filter, None, verbosity).await
    }

    /// Explains a delete of measurements; nothing is written. The request names the buckets, its filter is on measurements.
    pub async fn explain_delete_measurements(
        &self,
        operation: &mut Operation,
        request: &DeleteRequest,
        verbosity: Verbosity,
    ) -> Result<Doc> {
        let Some(collection) = self.collections.open(operation, &request.namespace)? else {
            return self.explain_delete(operation, request, verbosity).await;
        };
        let PlannedDeletion { query, deletion, bucket_filter } = self.plan_deletion(operation, request, &collection)?;
        if deletion.takes_whole_buckets() {
            let whole = DeleteRequest { filter: bucket_filter, hint: query.hint.clone(), ..request.clone() };
            return self.explain_delete(operation, &whole, verbosity).await;
        }
        let query = Arc::new(query);
        let mut run = Taken::new(&deletion);
        if verbosity >= Verbosity::ExecutionStats {
            let mut executor = self.run(&query, Some(&collection), |root, _| Ok(root))?;
            drive(&mut executor, operation, &*self.collections, &mut run).await?;
        }
        let on_top = OnTop::Modify { plan: deletion.describe(&bucket_filter), run: run.finish()? };
        let mut executor = self.run(&query, Some(&collection), |root, _| Ok(root))?;
        let usable = executor.usable_indexes();
        let shown = self.shown(&request.namespace, &query, Some(&collection), &usable, Some(on_top));
        self.explain(operation, &mut executor, &shown, verbosity).await
    }

    /// Explains an aggregation: a plan if the planner does all of it, else the plan and the stages behind it.
    pub async fn explain_aggregate(
        &self,
        operation: &mut Operation,
        request: &AggregateRequest,
        provider: Option<Arc<dyn StageProvider>>,
        verbosity: Verbosity,
    ) -> Result<Doc> {
        let mut aggregation = self.aggregate(operation, request, provider)?;
        let started_ns = operation.env.clock().monotonic_ns();
        if verbosity >= Verbosity::ExecutionStats && aggregation.output.is_none() {
            let mut sink = CountingSink::default();
            drive(&mut aggregation.executor, operation, &*self.collections, &mut sink).await?;
        } else {
            aggregation.executor.choose_plan(operation)?;
        }
        let duration_ms = (operation.env.clock().monotonic_ns() - started_ns) / 1_000_000;
        Ok(self.pipeline_document(&aggregation.executor, duration_ms, verbosity))
    }

    async fn explain_filter(
        &self,
        operation: &mut Operation,
        executor: &mut Executor,
        filter: Filter<'_>,
        on_top: Option<OnTop>,
        verbosity: Verbosity,
    ) -> Result<Doc> {
        let Filter { namespace, filter, collation, variables } = filter;
        let collection = executor.collection().cloned();
        let context = self.parse_context(operation, collation, variables, collection.as_deref())?;
        let query = CanonicalQuery::of_filter(namespace, filter.view(), &context)?;
        let shown = self.shown(namespace, &query, collection.as_deref(), &executor.usable_indexes(), on_top);
        self.explain(operation, executor, &shown, verbosity).await
    }

    fn pipeline_document(&self, pipeline: &PipelineExecutor, duration_ms: u64, verbosity: Verbosity) -> Doc {
        let mut out = DocBuilder::new();
        out.append("explainVersion", "1");
        // A search by distance stays a stage, although nothing of it is left behind the query.
        let name = if pipeline.is_search_by_distance() { "$geoNearCursor" } else { "$cursor" };
        let is_whole = pipeline.stages().is_empty() && !pipeline.is_search_by_distance();
        let cursor = pipeline.executor().map(|executor| {
            let mut cursor = DocBuilder::new();
            cursor.append("queryPlanner", self.cursor_planner(executor, is_whole));
            if verbosity >= Verbosity::ExecutionStats {
                cursor.append("executionStats", execution_stats(executor, duration_ms, verbosity, None));
            }
            cursor.finish()
        });
        match (cursor, pipeline.stages()) {
            (Some(cursor), []) if is_whole => out.append_all(cursor.view()),
            (cursor, stages) => {
                let mut shown = ArrayBuilder::new();
                if let Some(cursor) = cursor {
                    let returned = pipeline.executor().map_or(0, |executor| executor.root().counts().advanced);
                    let run = StageRun { returned, facts: StageFacts::default() };
                    let run = (verbosity >= Verbosity::ExecutionStats).then_some(&run);
                    shown.push(with_run(&doc! { (name): cursor }, run));
                }
                let runs = pipeline.runs();
                for (place, stage) in stages.iter().enumerate() {
                    let run = runs.get(place).filter(|_| verbosity >= Verbosity::ExecutionStats);
                    shown.push(with_run(&stage.to_doc(), run));
                }
                out.append("stages", shown.finish());
            }
        }
        out.finish()
    }

    /// The plans of the query that a pipeline begins with; `is_whole` if it does all of it.
    fn cursor_planner(&self, executor: &Executor, is_whole: bool) -> Doc {
        let namespace = executor.namespace();
        let Some(query) = executor.query() else { return super::query_planner(executor, namespace, Doc::new()) };
        let mut shown = self.shown(
            namespace,
            query,
            executor.collection().map(|collection| &**collection),
            &executor.usable_indexes(),
            None,
        );
        shown.is_whole_pipeline = is_whole;
        planner_section(executor, &shown)
    }

    fn shown<'s>(
        &self,
        namespace: &'s Namespace,
        query: &CanonicalQuery,
        collection: Option<&Collection>,
        usable: &str,
        on_top: Option<OnTop>,
    ) -> Shown<'s> {
        let shape = shape(query);
        Shown {
            namespace,
            parsed_query: query.filter.to_document(),
            collation: query.collation().cloned(),
            query_hash: query_hash(&shape),
            plan_cache_key: plan_cache_key(&cache_key(&shape, usable), collection.map_or(0, indexes_of)),
            has_index_filter: collection.is_some_and(|collection| self.index_filter(query, collection).is_some()),
            on_top,
            is_whole_pipeline: false,
        }
    }

    async fn explain(
        &self,
        operation: &mut Operation,
        executor: &mut Executor,
        shown: &Shown<'_>,
        verbosity: Verbosity,
    ) -> Result<Doc> {
        let started_ns = operation.env.clock().monotonic_ns();
        let mut failure = None;
        if verbosity >= Verbosity::ExecutionStats {
            let mut sink = CountingSink::default();
            failure = drive(executor, operation, &*self.collections, &mut sink).await.err();
            // What stops the operation stops the explanation, too.
            if let Some(stopped) = failure.take_if(|failure| failure.is(Category::Interruption)) {
                return Err(stopped);
            }
        } else {
            executor.choose_plan(operation)?;
        }
        let duration_ms = (operation.env.clock().monotonic_ns() - started_ns) / 1_000_000;
        let mut out = DocBuilder::new();
        out.append("explainVersion", "1");
        out.append("queryPlanner", planner_section(executor, shown));
        if verbosity >= Verbosity::ExecutionStats {
            out.append("executionStats", execution_section(executor, shown, duration_ms, verbosity, failure.as_ref()));
        }
        Ok(out.finish())
    }
}

impl Executor {
    /// Tries plans until one is chosen, if several are to be tried.
    pub(crate) fn choose_plan(&mut self, operation: &mut Operation) -> Result<()> {
        let is_open = |executor: &Executor| {
            executor.root().find::<MultiPlanStage>().is_some_and(|stage| stage.chosen().is_none())
        };
        while is_open(self) {
            match self.work_once(operation)? {
                Step::NeedTime => {}
                Step::Advanced(_) | Step::Finished => break,
            }
        }
        Ok(())
    }
}

/// What a delete would take out of buckets.
struct Taken<'d> {
    deletion: &'d Deletion,
    deleted: u64,
    unpacked: u64,
    failure: Result<()>,
}

impl<'d> Taken<'d> {
    fn new(deletion: &'d Deletion) -> Taken<'d> {
        Taken { deletion, deleted: 0, unpacked: 0, failure: Ok(()) }
    }

    fn finish(self) -> Result<Doc> {
        self.failure?;
        let int = |number: u64| i32::try_from(number).unwrap_or(i32::MAX);
        Ok(doc! {
            "nBucketsUnpacked": (int(self.unpacked)),
            "nMeasurementsMatched": (int(self.deleted)),
            "nMeasurementsDeleted": (int(self.deleted))
        })
    }
}

impl DocumentSink for Taken<'_> {
    fn offer(&mut self, bucket: &Doc) -> bool {
        self.unpacked += 1;
        match self.deletion.part(bucket) {
            Ok((_, deleted)) => self.deleted += deleted,
            Err(error) => self.failure = Err(error),
        }
        true
    }

    fn is_full(&self) -> bool {
        self.failure.is_err() || (self.deletion.is_single() && self.deleted > 0)
    }
}

/// How many documents a count leaves out.
fn skipped(request: &CountRequest) -> u64 {
    request.skip.map_or(0, i64::unsigned_abs)
}

/// The number of a collection's documents is known.
fn fast_count(namespace: &Namespace, count: u64, skipped: u64, verbosity: Verbosity) -> Doc {
    let plan = doc! { "stage": "RECORD_STORE_FAST_COUNT" };
    let mut out = DocBuilder::new();
    out.append("explainVersion", "1");
    out.document("queryPlanner", |planner| {
        planner.append("namespace", namespace.as_str());
        planner.append("indexFilterSet", false);
        planner.append("parsedQuery", DocRef::EMPTY);
        planner.append("maxIndexedOrSolutionsReached", false);
        planner.append("maxIndexedAndSolutionsReached", false);
        planner.append("maxScansToExplodeReached", false);
        planner.append("winningPlan", &plan);
        planner.append("rejectedPlans", pando_doc::ArrayRef::EMPTY);
    });
    if verbosity >= Verbosity::ExecutionStats {
        out.document("executionStats", |stats| {
            stats.append("executionSuccess", true);
            stats.append("nReturned", 0_i32);
            stats.append("executionTimeMillis", 0_i32);
            stats.append("totalKeysExamined", 0_i32);
            stats.append("totalDocsExamined", 0_i32);
            let counts = Counts { works: 1, is_finished: true, ..Counts::default() };
            stats.append("executionStages", count_stage("RECORD_STORE_FAST_COUNT", &counts, count, skipped, None));
        });
    }
    out.finish()
}

/// A stage with what it did.
fn with_run(stage: &Doc, run: Option<&StageRun>) -> Doc {
    let mut out = DocBuilder::new();
    out.append_all(stage.view());
    if let Some(run) = run {
        out.append_all(run.facts.details.view());
        out.append("nReturned", i64::try_from(run.returned).unwrap_or(i64::MAX));
        out.append("executionTimeMillisEstimate", 0_i64);
    }
    out.finish()
}
