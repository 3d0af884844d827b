//! Several plans for one query, tried against each other; and a plan that won earlier, watched.
//!
//! In the trial every candidate does a piece of work in turn, its results kept. The trial ends when one has found a batch, or
//! everything, or all have worked for long enough. The one that found most for its work goes on; what it found already comes
//! first. A plan from the cache is on probation: if it works far longer than it took to win, all candidates are tried
//! again.

use super::{Member, Stage, StageNode, Step};
use pando_base::{Error, Result};
use pando_operation::{Operation, storage_error};
use std::collections::VecDeque;

/// Results after which a trial ends.
const TRIAL_RESULTS_MAX: usize = 101;
/// A cached plan may work this many times as long as when it won.
const REPLAN_FACTOR: u64 = 10;

/// One plan in the trial.
pub struct Candidate {
    root: StageNode,
    results: VecDeque<Member>,
    is_finished: bool,
    /// Why it is out of the race.
    failure: Option<Error>,
    has_fetch: bool,
    has_sort: bool,
}

impl Candidate {
    /// A plan that has done nothing yet.
    pub fn new(root: StageNode) -> Candidate {
        let has_fetch = root.has("FETCH");
        let has_sort = root.has("SORT");
        Candidate { root, results: VecDeque::new(), is_finished: false, failure: None, has_fetch, has_sort }
    }

    /// Its stages.
    pub fn root(&self) -> &StageNode {
        &self.root
    }

    /// How much it found for its work, with small bonuses where that is equal.
    fn score(&self) -> f64 {
        let counts = self.root.counts();
        let works = counts.works.max(1) as f64;
        let bonus = (1.0 / (10.0 * works)).min(1e-4);
        let bonuses = [!self.has_fetch, !self.has_sort, true].into_iter().filter(|earned| *earned).count() as f64;
        let finished = if self.is_finished { 1.0 } else { 0.0 };
        1.0 + counts.advanced as f64 / works + bonuses * bonus + finished
    }

    /// One piece of work of a trial; true if the trial is over. Conflicts in storage are errors of the whole query.
    fn try_work(&mut self, operation: &mut Operation, results_max: usize) -> Result<bool> {
        match self.root.work(operation) {
            Ok(Step::Advanced(member)) => self.results.push_back(member),
            Ok(Step::NeedTime) => {}
            Ok(Step::Finished) => self.is_finished = true,
            Err(error) if storage_error(&error).is_some() => return Err(error),
            Err(error) => self.failure = Some(error),
        }
        Ok(self.is_finished || self.results.len() >= results_max)
    }

    /// One piece of work after the trial.
    fn work(&mut self, operation: &mut Operation) -> Result<Step> {
        match self.results.pop_front() {
            Some(member) => Ok(Step::Advanced(member)),
            None if self.is_finished => Ok(Step::Finished),
            None => self.root.work(operation),
        }
    }
}

/// What a trial came to.
pub struct Outcome<'t> {
    /// Which candidate won.
    pub chosen: usize,
    /// How much work that took.
    pub works: u64,
    /// All of them, the best first, with how good each was found.
    pub ranked: Vec<(&'t StageNode, f64)>,
}

/// Is told what a trial came to.
pub type OnChosen = Box<dyn FnMut(Outcome<'_>) + Send>;

/// Makes all candidates, for when a cached plan fails.
pub type Replan = Box<dyn FnOnce() -> Result<Vec<Candidate>> + Send>;

/// How a plan is found.
enum State {
    /// A plan that won earlier.
    Probation { works_max: u64, replan: Option<Replan> },
    /// All candidates are tried.
    Trial { works_max: u64, next: usize, works: u64 },
    /// This one won.
    Chosen(usize),
}

/// Runs the best of several plans.
pub struct MultiPlanStage {
    candidates: Vec<Candidate>,
    state: State,
    on_chosen: Option<OnChosen>,
    trial_works_max: u64,
    /// A plan that has found so many results ends the trial.
    results_max: usize,
    /// Some plan has ended it; the others have their turn yet.
    is_over: bool,
    is_from_cache: bool,
    /// Why a cached plan was given up.
    replan_reason: Option<String>,
    /// The indexes that it could choose from.
    usable: String,
}

impl MultiPlanStage {
    /// A trial of these candidates, each working no longer than so.
    pub fn trial(candidates: Vec<Candidate>, works_max: u64, on_chosen: Option<OnChosen>) -> MultiPlanStage {
        debug_assert!(!candidates.is_empty(), "something has to be tried");
        MultiPlanStage {
            candidates,
            state: State::Trial { works_max, next: 0, works: 0 },
            on_chosen,
            trial_works_max: works_max,
            is_from_cache: false,
            replan_reason: None,
            usable: String::new(),
            results_max: TRIAL_RESULTS_MAX,
            is_over: false,
        }
    }

    /// The same with another number of results that end a trial.
    pub fn trying_for(mut self, results_max: usize) -> MultiPlanStage {
        self.results_max = results_max;
        self
    }

    /// A plan from the cache, which won after so much work.
    pub fn cached(
        candidate: Candidate,
        works: u64,
        trial_works_max: u64,
        replan: Replan,
        on_chosen: Option<OnChosen>,
    ) -> MultiPlanStage {
        let works_max = works.max(1).saturating_mul(REPLAN_FACTOR);
        MultiPlanStage {
            candidates: vec![candidate],
            state: State::Probation { works_max, replan: Some(replan) },
            on_chosen,
            trial_works_max,
            is_from_cache: true,
            replan_reason: None,
            usable: String::new(),
            results_max: TRIAL_RESULTS_MAX,
            is_over: false,
        }
    }

    /// The same, saying which indexes there are to choose from.
    #[must_use]
    pub fn choosing_from(mut self, usable: String) -> MultiPlanStage {
        self.usable = usable;
        self
    }

    /// The indexes that it could choose from.
    pub fn usable(&self) -> &str {
        &self.usable
    }

    /// How good each of the candidates is found, in the order of [`MultiPlanStage::ranked`].
    pub fn scores(&self) -> Vec<f64> {
        let chosen = self.chosen();
        let mut all: Vec<(usize, &Candidate)> = self.candidates.iter().enumerate().collect();
        all.sort_by_key(|(index, _)| Some(*index) != chosen);
        all.into_iter().map(|(_, candidate)| candidate.score()).collect()
    }

    /// The candidates, the chosen one first.
    pub fn ranked(&self) -> Vec<&StageNode> {
        let chosen = self.chosen();
        let mut all: Vec<(usize, &Candidate)> = self.candidates.iter().enumerate().collect();
        all.sort_by_key(|(index, _)| Some(*index) != chosen);
        all.into_iter().map(|(_, candidate)| &candidate.root).collect()
    }

    /// The chosen candidate's place.
    pub fn chosen(&self) -> Option<usize> {
        match self.state {
            State::Chosen(index) => Some(index),
            State::Probation { .. } => Some(0),
            State::Trial { .. } => None,
        }
    }

    /// True if it will not choose another.
    pub fn is_settled(&self) -> bool {
        matches!(self.state, State::Chosen(_))
    }

    /// True if the plan came from the cache and was not replaced.
    pub fn is_from_cache(&self) -> bool {
        self.is_from_cache && self.replan_reason.is_none()
    }

    /// True if a cached plan was given up.
    pub fn was_replanned(&self) -> bool {
        self.replan_reason.is_some()
    }

    /// Why a cached plan was given up, if it was.
    pub fn replan_reason(&self) -> Option<&str> {
        self.replan_reason.as_deref()
    }

    fn probe(&mut self, operation: &mut Operation) -> Result<()> {
        let State::Probation { works_max, replan } = &mut self.state else { return Ok(()) };
        let Some(candidate) = self.candidates.first_mut() else { return Ok(()) };
        let is_over = candidate.try_work(operation, self.results_max)?;
        if is_over {
            self.state = State::Chosen(0);
            return Ok(());
        }
        if candidate.failure.is_none() && candidate.root.counts().works < *works_max {
            return Ok(());
        }
        let Some(replan) = replan.take() else { return Ok(()) };
        let reason = match &candidate.failure {
            Some(failure) => format!("cached plan returned: {}: {}", failure.code().name(), failure.reason()),
            None => format!(
                "cached plan was less efficient than expected: expected trial execution to take {} works but it took at \
                 least {} works",
                *works_max / REPLAN_FACTOR,
                *works_max
            ),
        };
        self.candidates = replan()?;
        self.replan_reason = Some(reason);
        self.state = State::Trial { works_max: self.trial_works_max, next: 0, works: 0 };
        Ok(())
    }

    fn race(&mut self, operation: &mut Operation) -> Result<()> {
        let State::Trial { works_max, next, works } = &mut self.state else { return Ok(()) };
        self.is_over |= match self.candidates.get_mut(*next) {
            Some(candidate) if candidate.failure.is_none() => candidate.try_work(operation, self.results_max)?,
            _ => false,
        };
        *next += 1;
        // All have the same number of turns, whoever is first.
        if *next >= self.candidates.len() {
            *next = 0;
            *works += 1;
            let is_hopeless = self.candidates.iter().all(|candidate| candidate.failure.is_some());
            if self.is_over || is_hopeless || *works >= *works_max {
                self.choose()?;
            }
        }
        Ok(())
    }

    fn choose(&mut self) -> Result<()> {
        let running = self.candidates.iter().enumerate().filter(|(_, candidate)| candidate.failure.is_none());
        // Of equals the first wins.
        let best = running.reduce(|best, other| if other.1.score() > best.1.score() { other } else { best });
        let Some((index, winner)) = best else {
            let failure = self.candidates.iter_mut().find_map(|candidate| candidate.failure.take());
            return Err(failure.unwrap_or_else(|| Error::internal("no plan could be run")));
        };
        let works = winner.root.counts().works;
        self.state = State::Chosen(index);
        if let Some(on_chosen) = &mut self.on_chosen {
            let mut ranked: Vec<(&StageNode, f64)> =
                self.candidates.iter().map(|candidate| (&candidate.root, candidate.score())).collect();
            if index < ranked.len() {
                let winner = ranked.remove(index);
                ranked.sort_by(|(_, one), (_, two)| two.total_cmp(one));
                ranked.insert(0, winner);
            }
            on_chosen(Outcome { chosen: index, works, ranked });
        }
        for (other, candidate) in self.candidates.iter_mut().enumerate() {
            if other != index {
                candidate.results = VecDeque::new();
                candidate.root.save();
            }
        }
        Ok(())
    }
}

impl Stage for MultiPlanStage {
    fn work(&mut self, operation: &mut Operation) -> Result<Step> {
        match self.state {
            State::Chosen(index) => match self.candidates.get_mut(index) {
                Some(candidate) => candidate.work(operation),
                None => Ok(Step::Finished),
            },
            State::Probation { .. } => self.probe(operation).map(|()| Step::NeedTime),
            State::Trial { .. } => self.race(operation).map(|()| Step::NeedTime),
        }
    }

    fn name(&self) -> &'static str {
        "MULTI_PLAN"
    }

    fn children(&self) -> &[StageNode] {
        let candidate = self.chosen().and_then(|index| self.candidates.get(index));
        candidate.map_or(&[], |candidate| std::slice::from_ref(&candidate.root))
    }

    fn save(&mut self) {
        self.candidates.iter_mut().for_each(|candidate| candidate.root.save());
    }

    fn restore(
        &mut self,
        operation: &mut Operation,
        collection: &std::sync::Arc<pando_catalog::Collection>,
    ) -> Result<()> {
        let chosen = match self.state {
            State::Chosen(index) => Some(index),
            _ => None,
        };
        for (index, candidate) in self.candidates.iter_mut().enumerate() {
            if chosen.is_none_or(|chosen| chosen == index) {
                candidate.root.restore(operation, collection)?;
            }
        }
        Ok(())
    }
}
