//! The query engine of a node: from requests to executors.

use crate::canonical::{id_of, id_of_root};
use crate::executor::{
    Collections, Executor, NO_TABLE_SCAN, StoredFunctions, TRIAL_RESULTS_MAX, TRIAL_WORKS_MAX, YieldPolicy,
    script_limits,
};
use crate::explain::plan_documents;
use crate::limits::{PlannerLimits, UNKNOWN_KEYWORDS_ARE_IGNORED, USER_ROLES_ARE_SHOWN, expression_limits};
use crate::memory::HeldByNode;
use crate::plan_cache::{IndexFilter, PlanCache, PlanStory, cache_key, indexes_of};
use crate::planner::{PlanNode, ProjectionKind, index_required, plans};
use crate::request::FindRequest;
use crate::shape::{indexes_of_plans, plan_signature, shape};
use crate::spill::{SpillCounters, Spilling};
use crate::stage::{
    BuildContext, Candidate, EofStage, Examined, MultiPlanStage, Outcome, StageNode, build, find_by_id,
};
use crate::write::ObjectIds;
use crate::{CanonicalQuery, QueryCounters};
use pando_base::{Error, ErrorCode, Log, Namespace, ParameterSet, Result, Timestamp};
use pando_catalog::Collection;
use pando_collation::{Collation, IcuCollator};
use pando_collection::WritePath;
use pando_doc::{Array, Doc, DocRef, Value};
use pando_env::Env;
use pando_expr::matcher::Node;
use pando_expr::metadata::MetaSet;
use pando_expr::{MatchExpression, ParseContext, Projection, ProjectionPolicies, SharedCollator, SharedRandom};
use pando_operation::{Operation, storage_error};
use pando_script::{Script, SharedScript};
use pando_sorter::SpillDirectory;
use pando_timeseries::BucketCatalog;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// Of plans with more nodes and intervals than these together nothing is told later: writing that down takes longer than the query.
const TOLD_WEIGHT_MAX: usize = 10_000;

/// The least part of a collection that plans are tried on.
const TRIAL_COLLECTION_FRACTION: f64 = 0.3;

/// Runs queries.
#[derive(Clone)]
pub struct QueryEngine {
    /// Finds collections.
    pub collections: Arc<dyn Collections>,
    /// Writes documents.
    pub write_path: Arc<WritePath>,
    /// Remembers plans.
    pub plan_cache: PlanCache,
    /// The server's parameters.
    pub parameters: Arc<ParameterSet>,
    /// New object ids.
    pub object_ids: Arc<ObjectIds>,
    /// The numbers of `$rand`.
    pub(crate) random: SharedRandom,
    /// The clock on the wall, in milliseconds.
    pub(crate) wall_ms: Arc<dyn Fn() -> i64 + Send + Sync>,
    /// Is there JavaScript?
    pub(crate) is_scripting: bool,
    /// How often the present was asked for as a timestamp, so that each time is another.
    pub(crate) timestamps_given: Arc<AtomicU32>,
    /// Which buckets of time series take measurements.
    pub buckets: Arc<BucketCatalog>,
    /// What queries have looked at.
    pub counters: Arc<QueryCounters>,
    /// Where large stages go on.
    pub(crate) spilling: Arc<Spilling>,
    /// When executors yield, if not as the parameters say.
    pub(crate) yield_override: Option<YieldPolicy>,
    /// Plans are looked at, not run for their results: the cache is neither asked nor told.
    pub(crate) is_explaining: bool,
    /// What `$$CLUSTER_TIME` is; it has none on a node without a set.
    pub(crate) cluster_clock: Option<ClusterTimeSource>,
    /// Where it says what goes wrong and hurts nobody.
    pub(crate) log: Log,
}

/// The time of the cluster, as it is now.
pub type ClusterTimeSource = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What a find turned out to be.
pub enum FindPlan {
    /// It can be run.
    Executor(Box<Executor>),
    /// The name is a view's: the aggregation to run in its place is made by `views`.
    View(Box<pando_catalog::ResolvedView>),
}

/// Numbers with the 53 bits that they can have between 0 and 1.
fn random(env: &Env) -> SharedRandom {
    let env = env.clone();
    SharedRandom::new(move || (env.random().next_u64() >> 11) as f64 / (1_u64 << 53) as f64)
}

fn wall_ms(env: &Env) -> Arc<dyn Fn() -> i64 + Send + Sync> {
    let env = env.clone();
    Arc::new(move || i64::try_from(env.clock().wall_ms()).unwrap_or(i64::MAX))
}

/// What the variables that tell the time are.
#[derive(Clone, Copy)]
struct Times {
    now_ms: i64,
    cluster: Option<Timestamp>,
}

impl QueryEngine {
    /// An engine over a node's collections.
    pub fn new(
        env: &Env,
        collections: Arc<dyn Collections>,
        write_path: Arc<WritePath>,
        parameters: Arc<ParameterSet>,
    ) -> QueryEngine {
        let spilling = Arc::new(Spilling::new(&parameters, None));
        QueryEngine {
            collections,
            write_path,
            plan_cache: PlanCache::new(),
            parameters,
            object_ids: Arc::new(ObjectIds::new(env)),
            random: random(env),
            wall_ms: wall_ms(env),
            is_scripting: true,
            timestamps_given: Arc::default(),
            buckets: Arc::default(),
            counters: Arc::default(),
            spilling,
            yield_override: None,
            is_explaining: false,
            cluster_clock: None,
            log: Log::silent(),
        }
    }

    /// Lets it say something in this log.
    #[must_use]
    pub fn logging_to(mut self, log: Log) -> QueryEngine {
        self.log = log;
        self
    }

    /// Lets expressions know the time of the cluster.
    #[must_use]
    pub fn telling_cluster_time(mut self, clock: ClusterTimeSource) -> QueryEngine {
        self.cluster_clock = Some(clock);
        self
    }

    /// Lets it remember plans in this cache, which hears of what is dropped.
    #[must_use]
    pub fn remembering_in(mut self, plan_cache: PlanCache) -> QueryEngine {
        self.plan_cache = plan_cache;
        self
    }

    /// Lets stages that take much memory go on in this directory.
    #[must_use]
    pub fn spilling_to(mut self, directory: Arc<SpillDirectory>) -> QueryEngine {
        self.spilling = Arc::new(Spilling::new(&self.parameters, Some(directory)));
        self
    }

    /// What the stages of all requests of this node hold.
    pub fn held_memory(&self) -> &Arc<HeldByNode> {
        self.spilling.held()
    }

    /// What stages of this node have spilled.
    pub fn spill_counters(&self) -> &Arc<SpillCounters> {
        self.spilling.counters()
    }

    /// The same without JavaScript, if it is not wanted.
    #[must_use]
    pub fn with_scripting(mut self, is_wanted: bool) -> QueryEngine {
        self.is_scripting = is_wanted;
        self
    }

    /// The same for requests that are explained: what is shown does not depend on what ran before, and leaves no traces.
    #[must_use]
    pub fn explaining(&self) -> QueryEngine {
        QueryEngine { is_explaining: true, ..self.clone() }
    }

    /// Where the JavaScript of one request runs.
    fn script(&self, operation: &Operation) -> Option<SharedScript> {
        if !self.is_scripting {
            return None;
        }
        let script = Script::new(script_limits(&self.parameters)).made_by(&operation.context);
        let stored = operation.extensions.get::<StoredFunctions>();
        Some(Arc::new(match stored {
            Some(stored) => script.with_globals(&stored.0),
            None => script,
        }))
    }

    /// When executors yield.
    pub fn yield_policy(&self) -> YieldPolicy {
        self.yield_override.unwrap_or_else(|| YieldPolicy::of(&self.parameters))
    }

    /// From here on the expressions of this operation see the present time as `$$NOW` and
    /// `$$CLUSTER_TIME`, however long it takes: the statements of one command tell the same time.
    pub fn fix_times(&self, operation: &mut Operation) {
        let times = self.times(operation);
        operation.extensions.insert(times);
    }

    fn times(&self, operation: &Operation) -> Times {
        let now_ms = i64::try_from(operation.env.clock().wall_ms()).unwrap_or(i64::MAX);
        let cluster = self.cluster_clock.as_ref().map(|clock| clock()).filter(|time| time.is_some());
        Times { now_ms, cluster }
    }

    /// The surroundings of a request's expressions. Without a collation of its own it has the collection's.
    pub fn parse_context(
        &self,
        operation: &Operation,
        collation: &Doc,
        variables: &Doc,
        collection: Option<&Collection>,
    ) -> Result<ParseContext> {
        let default = collection.and_then(|collection| collection.options.collation.as_ref());
        let chosen = if collation.is_empty() { default } else { Some(collation) };
        let collation = chosen.map(|collation| Collation::parse(collation.view())).transpose()?.flatten();
        let times = operation.extensions.get::<Times>().copied().unwrap_or_else(|| self.times(operation));
        let mut context = ParseContext::new(times.now_ms);
        context.cluster_time = times.cluster;
        context.ignores_unknown_keywords = self.parameters.get(&UNKNOWN_KEYWORDS_ARE_IGNORED);
        context.user_roles = user_roles(operation, &self.parameters);
        context.random = Some(self.random.clone());
        context.script = self.script(operation);
        context.limits = expression_limits(&self.parameters);
        context.oplog_updates = Some(crate::pipeline::OPLOG_UPDATES);
        if let Some(collation) = collation {
            context.collator = Some(Arc::new(IcuCollator::new(&collation)?));
        }
        context.bind(variables.view())?;
        Ok(context)
    }

    /// Plans a find. Opens the operation's snapshot.
    pub fn find(&self, operation: &mut Operation, request: &FindRequest) -> Result<FindPlan> {
        let collection = self.collections.open(operation, &request.namespace)?;
        if collection.is_none()
            && let Some(view) = self.collections.view(&request.namespace)?
        {
            return Ok(FindPlan::View(Box::new(view)));
        }
        // Somebody looks at the clock for those who are watched only.
        let start_ns = operation.context.is_watched().then(|| operation.context.now_ns());
        let executor = self.find_in(operation, request, collection)?;
        if let Some(start_ns) = start_ns {
            let micros = operation.context.now_ns().saturating_sub(start_ns) / 1000;
            operation.context.statistics().planning_micros.add(micros.max(1));
        }
        Ok(FindPlan::Executor(Box::new(executor)))
    }

    /// The document of a find by `_id` and nothing else, without a plan: what most reads are. None if the request is something
    /// else, or met a conflict; then it has to be planned.
    pub fn find_at_once(&self, operation: &mut Operation, request: &FindRequest) -> Result<Option<Option<Doc>>> {
        match request.is_id_only() {
            true => self.find_document(operation, &request.namespace, request.filter.view()),
            false => Ok(None),
        }
    }

    /// The same where a filter is all that is asked.
    pub fn find_document(
        &self,
        operation: &mut Operation,
        namespace: &Namespace,
        filter: DocRef<'_>,
    ) -> Result<Option<Option<Doc>>> {
        let Some(id) = id_of(filter).filter(|_| !crate::fail_points::are_on()) else { return Ok(None) };
        let Some(collection) = self.collections.open(operation, namespace)? else { return Ok(None) };
        if collection.options.collation.is_some() || !collection.knows_ids() {
            return Ok(None);
        }
        self.counters.plan_looked_up(true, false);
        let found = match find_by_id(operation, &collection, id, None) {
            Ok(found) => found,
            Err(error) if storage_error(&error).is_some() => return Ok(None),
            Err(error) => return Err(error),
        };
        if found.is_some() {
            operation.context.statistics().keys_examined.add(1);
            operation.context.statistics().documents_examined.add(1);
            self.counters.examined(Examined { keys: 1, documents: 1 });
        }
        Ok(Some(found.map(|(_, document)| document)))
    }

    /// Plans a find in a collection that was opened.
    pub fn find_in(
        &self,
        operation: &mut Operation,
        request: &FindRequest,
        collection: Option<Arc<Collection>>,
    ) -> Result<Executor> {
        if let Some(collection) = &collection
            && let Some(plan) = self.id_plan(request, collection)?
        {
            let context = self.build_context(collection, &Arc::new(matches_all()), None);
            let executor = self.executor(build(&plan, &context)?, &request.namespace, Some(collection), &plan)?;
            return Ok(executor.showing_record_ids(request.show_record_id));
        }
        if let (Some(point), Some(collection)) = (&request.resume, &collection) {
            point.check(collection.is_clustered())?;
        }
        let context = self.parse_context(operation, &request.collation, &request.variables, collection.as_deref())?;
        let query = CanonicalQuery::of_find(request, &context)?;
        self.run(&Arc::new(query), collection.as_ref(), |root, _| Ok(root))
    }

    /// The plan of a find by `_id` and nothing else, without reading the filter in full.
    fn id_plan(&self, request: &FindRequest, collection: &Collection) -> Result<Option<PlanNode>> {
        // What is computed needs the surroundings of the request.
        let is_computed = request
            .projection
            .elements()
            .any(|field| !matches!(field.value, Value::Bool(_)) && !field.value.is_number());
        let is_plain = request.is_plain() && collection.options.collation.is_none() && !is_computed;
        let has_index = collection.id_index().is_some();
        let Some(id) = id_of(request.filter.view()).filter(|_| is_plain && has_index) else { return Ok(None) };
        request.validate()?;
        let node = PlanNode::IdHack { id: id.to_shared(&request.filter) };
        if request.projection.is_empty() {
            return Ok(Some(node));
        }
        let projection =
            Projection::parse(request.projection.view(), ProjectionPolicies::FIND, &ParseContext::default())?;
        if projection.needs_match_details() {
            return Ok(None);
        }
        Ok(Some(PlanNode::Projection {
            child: Box::new(node),
            projection: Arc::new(projection),
            kind: ProjectionKind::Default,
            specification: request.projection.clone(),
            is_advice: false,
        }))
    }

    /// Plans a query and makes an executor of it. `wrap` puts a root on the stages that find, e.g. one that updates.
    pub(crate) fn run(
        &self,
        query: &Arc<CanonicalQuery>,
        collection: Option<&Arc<Collection>>,
        wrap: impl FnOnce(StageNode, &Arc<Collection>) -> Result<StageNode>,
    ) -> Result<Executor> {
        let Some(collection) = collection else {
            if query.filter.has_text() {
                let detail = format!(" (no such collection '{}')", query.namespace);
                return Err(index_required(&detail));
            }
            let root = StageNode::new(EofStage);
            return self.executor(root, &query.namespace, None, &PlanNode::Eof);
        };
        let (root, plan) = self.stages(query, collection)?;
        let root = wrap(root, collection)?;
        let executor = self.executor(root, &query.namespace, Some(collection), &plan)?.for_query(query);
        if executor.root().has("COLLSCAN") {
            self.counters.collection_scan(query.tailable);
        }
        if query.sort.is_some() && executor.root().has("SORT") {
            self.counters.sort();
        }
        // The keys of an index take the place of everything else.
        Ok(executor.showing_record_ids(query.show_record_id && !query.return_key))
    }

    pub(crate) fn executor(
        &self,
        root: StageNode,
        namespace: &Namespace,
        collection: Option<&Arc<Collection>>,
        plan: &PlanNode,
    ) -> Result<Executor> {
        let policy = self.yield_policy();
        let executor = Executor::new(root, namespace.clone(), collection.cloned(), policy, plan.summary());
        Ok(executor.counting(&self.counters))
    }

    pub(crate) fn build_context(
        &self,
        collection: &Arc<Collection>,
        filter: &Arc<MatchExpression>,
        collator: Option<SharedCollator>,
    ) -> BuildContext {
        BuildContext {
            collection: Arc::clone(collection),
            filter: Arc::clone(filter),
            collator,
            spilling: Arc::clone(&self.spilling),
            allow_disk_use: None,
            metadata: MetaSet::default(),
            sort: None,
            wants_all: false,
        }
    }

    /// The stages that find what the query asks for, and the plan or one of those tried.
    pub(crate) fn stages(
        &self,
        query: &Arc<CanonicalQuery>,
        collection: &Arc<Collection>,
    ) -> Result<(StageNode, PlanNode)> {
        let mut context = self.build_context(collection, &query.filter, query.collator.clone());
        (context.allow_disk_use, context.wants_all) = (query.allow_disk_use, query.wants_all);
        (context.metadata, context.sort) = (query.metadata, query.sort.clone());
        let filter = self.index_filter(query, collection);
        let mut candidates = self.plans(query, collection, filter.as_deref())?;
        let is_cacheable = !self.is_explaining && (!query.filter.root().is_trivially_true() || query.sort.is_some());
        if candidates.len() == 1 {
            self.counters.plan_looked_up(is_cacheable, false);
            let plan = candidates.swap_remove(0);
            return Ok((build(&plan, &context)?, plan));
        }
        let usable = indexes_of_plans(&candidates);
        let key = cache_key(&shape(query), &usable);
        let works_max = self.trial_works_max(collection);
        let signatures: Vec<String> = candidates.iter().map(plan_signature).collect();
        let cached = self.plan_cache.get(collection, &key).filter(|_| !self.is_explaining);
        let on_chosen = (!self.is_explaining)
            .then(|| self.remember(query, collection, key, &candidates, &signatures, filter.is_some()));
        let known = cached.and_then(|cached| {
            let place = signatures.iter().position(|signature| *signature == cached.signature)?;
            Some((place, cached.works))
        });
        self.counters.plan_looked_up(is_cacheable, known.is_some());
        let stage = match known {
            None => {
                let roots = candidates.iter().map(|plan| build(plan, &context).map(Candidate::new));
                MultiPlanStage::trial(roots.collect::<Result<_>>()?, works_max, on_chosen)
            }
            Some((place, works)) => {
                candidates.swap(0, place);
                let first = candidates.first().map(|plan| build(plan, &context).map(Candidate::new));
                let candidate = first.ok_or_else(|| Error::internal("a cached plan is among the candidates"))??;
                let (all, again) = (candidates.clone(), context.clone());
                let replan = Box::new(move || all.iter().map(|plan| build(plan, &again).map(Candidate::new)).collect());
                MultiPlanStage::cached(candidate, works, works_max, replan, on_chosen)
            }
        };
        let plan = candidates.swap_remove(0);
        let results_max = usize::try_from(self.parameters.get(&TRIAL_RESULTS_MAX)).unwrap_or(1);
        Ok((StageNode::new(stage.choosing_from(usable).trying_for(results_max)), plan))
    }

    /// Plans of a query; a look-up by `_id` if that is all it asks for.
    pub(crate) fn plans(
        &self,
        query: &CanonicalQuery,
        collection: &Collection,
        filter: Option<&IndexFilter>,
    ) -> Result<Vec<PlanNode>> {
        let has_index = collection.id_index().is_some();
        let wants_whole = query.projection.is_none() || query.is_projection_advice;
        let is_plain = query.is_plain() && query.skip == 0 && !query.is_count && wants_whole;
        let is_id_only = is_plain && has_index && query.collation() == collection.options.collation.as_ref();
        if let Some(id) = id_of_root(query.filter.root()).filter(|_| is_id_only) {
            return Ok(vec![PlanNode::IdHack { id: id.clone() }]);
        }
        let mut found = plans(query, collection, filter, PlannerLimits::of(&self.parameters))?;
        if let Some(order) = &query.bucket_order {
            found = found.into_iter().map(|plan| order.turned(plan, collection.is_clustered())).collect();
        }
        let is_free =
            query.filter.root().is_trivially_true() || query.namespace.is_system() || query.namespace.is_internal();
        if is_free || !self.parameters.get(&NO_TABLE_SCAN) {
            return Ok(found);
        }
        without_table_scans(query, found)
    }

    /// The indexes that the query may use, if not all.
    pub(crate) fn index_filter(&self, query: &CanonicalQuery, collection: &Collection) -> Option<Arc<IndexFilter>> {
        self.plan_cache.filter(&collection.uuid, || shape(query))
    }

    /// Says which indexes queries of the request's shape may use.
    pub fn set_index_filter(
        &self,
        operation: &mut Operation,
        request: &FindRequest,
        patterns: Vec<Doc>,
        names: Vec<String>,
    ) -> Result<()> {
        let collection = self.collections.open(operation, &request.namespace)?;
        let collection = collection.ok_or_else(|| Error::bad_value("no such collection"))?;
        let query = self.shaped(operation, request, &collection)?;
        let filter = IndexFilter { query: query.shown(), patterns, names };
        self.plan_cache.set_filter(collection.uuid, &shape(&query), filter);
        Ok(())
    }

    /// Takes back what was said of the request's shape, or of all.
    pub fn clear_index_filters(
        &self,
        operation: &mut Operation,
        request: &FindRequest,
        only_its_shape: bool,
    ) -> Result<()> {
        let Some(collection) = self.collections.open(operation, &request.namespace)? else { return Ok(()) };
        let shape = match only_its_shape {
            true => Some(shape(&self.shaped(operation, request, &collection)?)),
            false => None,
        };
        self.plan_cache.clear_filters(&collection.uuid, shape.as_deref());
        Ok(())
    }

    fn shaped(&self, operation: &Operation, request: &FindRequest, collection: &Collection) -> Result<CanonicalQuery> {
        let context = self.parse_context(operation, &request.collation, &request.variables, Some(collection))?;
        CanonicalQuery::of_find(request, &context)
    }

    /// Forgets the plans of a collection that have won: that of the request's shape, or all.
    pub fn forget_plans(&self, operation: &mut Operation, request: &FindRequest, only_its_shape: bool) -> Result<()> {
        let Some(collection) = self.collections.open(operation, &request.namespace)? else { return Ok(()) };
        if !only_its_shape {
            self.plan_cache.clear(&collection.uuid);
            return Ok(());
        }
        let query = self.shaped(operation, request, &collection)?;
        self.plan_cache.remove(&collection.uuid, &shape(&query));
        Ok(())
    }

    fn trial_works_max(&self, collection: &Collection) -> u64 {
        let least = u64::try_from(self.parameters.get(&TRIAL_WORKS_MAX)).unwrap_or(1);
        let records = collection.records.num_records().unwrap_or(0).max(0) as f64;
        least.max((records * TRIAL_COLLECTION_FRACTION) as u64)
    }

    fn remember(
        &self,
        query: &Arc<CanonicalQuery>,
        collection: &Collection,
        key: String,
        candidates: &[PlanNode],
        signatures: &[String],
        has_index_filter: bool,
    ) -> Box<dyn FnMut(Outcome<'_>) + Send> {
        let (cache, uuid, indexes) = (self.plan_cache.clone(), collection.uuid, indexes_of(collection));
        let is_told = candidates.iter().map(PlanNode::weight).sum::<usize>() <= TOLD_WEIGHT_MAX;
        let (signatures, query, wall_ms) = (signatures.to_vec(), Arc::clone(query), Arc::clone(&self.wall_ms));
        Box::new(move |outcome| {
            let Some(signature) = signatures.get(outcome.chosen) else { return };
            let created_ms = wall_ms();
            let story = if is_told {
                let (plan, trials) = plan_documents(outcome.ranked.iter().map(|(root, _)| *root));
                let scores = outcome.ranked.iter().map(|(_, score)| *score).collect();
                PlanStory { created_from: query.shown(), created_ms, plan, trials, scores, has_index_filter, is_told }
            } else {
                PlanStory { created_ms, has_index_filter, ..PlanStory::default() }
            };
            cache.put(uuid, indexes, &key, signature.clone(), outcome.works, story);
        })
    }
}

/// The plans that have indexes; an error if there are none.
fn without_table_scans(query: &CanonicalQuery, mut found: Vec<PlanNode>) -> Result<Vec<PlanNode>> {
    let reason = match query.tailable {
        true => "Running with 'notablescan', so tailable cursors (which always do a table scan) are not allowed",
        false => "No indexed plans available, and running with 'notablescan'",
    };
    let is_forced = query.hint.natural().is_some() && !query.tailable;
    let reason = if is_forced { "hint $natural is not allowed, because 'notablescan' is enabled" } else { reason };
    let is_whole =
        |node: &PlanNode| matches!(node, PlanNode::CollectionScan(scan) if scan.min.is_none() && scan.max.is_none());
    found.retain(|plan| !plan.any(&is_whole));
    if found.is_empty() {
        return Err(query.refused(reason).with_code(ErrorCode::NoQueryExecutionPlans));
    }
    Ok(found)
}

/// The filter that leaves nothing out.
pub(crate) fn matches_all() -> MatchExpression {
    MatchExpression::from_node(Node::And(Vec::new()), None)
}

/// The error for a request on a collection that has to be there.
pub(crate) fn namespace_not_found(namespace: &Namespace) -> Error {
    Error::new(ErrorCode::NamespaceNotFound, format!("Collection {namespace} doesn't exist"))
}

/// `$$USER_ROLES`: what the client's user was given, and what follows from it; nothing where nobody logs in.
fn user_roles(operation: &Operation, parameters: &ParameterSet) -> Option<Array> {
    if !parameters.get(&USER_ROLES_ARE_SHOWN) {
        return None;
    }
    let roles = operation.context.client().roles();
    Some(if roles.is_empty() { Array::default() } else { Array::trusted(roles) })
}
