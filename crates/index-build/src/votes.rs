//! Votes on builds, and changes of their quorum.

use crate::active::ActiveBuild;
use crate::builds::IndexBuilds;
use crate::entries::BuildEntry;
use crate::quorum::CommitQuorum;
use pando_base::{ErrorCode, Namespace, Result, Uuid, bail, ensure};
use std::collections::BTreeSet;

impl IndexBuilds {
    /// Does the build ask members at all?
    pub(crate) fn has_votes(&self, build: &ActiveBuild) -> bool {
        build.is_two_phase && build.quorum.lock().is_enabled()
    }

    /// Makes the entry of a build, unless an earlier life of the server has.
    pub(crate) async fn enter_entry(&self, build: &ActiveBuild) -> Result<()> {
        let fresh = BuildEntry {
            build_uuid: build.build_uuid,
            collection_uuid: build.collection_uuid,
            quorum: build.quorum.lock().clone(),
            index_names: build.index_names.clone(),
            ready_members: BTreeSet::new(),
        };
        let entered = |entry: Option<BuildEntry>| Some(entry.unwrap_or_else(|| fresh.clone()));
        self.change_entry(build.build_uuid, build.collection_uuid, entered).await.map(|_| ())
    }

    /// A member is ready to commit.
    pub(crate) async fn vote(&self, build: &ActiveBuild, host: &str) -> Result<()> {
        let voted = |entry: Option<BuildEntry>| {
            entry.map(|mut entry| {
                entry.ready_members.insert(host.to_owned());
                entry
            })
        };
        self.change_entry(build.build_uuid, build.collection_uuid, voted).await?;
        build.quorum_changed.notify_waiters();
        Ok(())
    }

    /// `voteCommitIndexBuild`: another member says that it is ready.
    pub async fn take_vote(&self, build_uuid: Uuid, host: &str) -> Result<()> {
        let Some(build) = self.of_uuid(build_uuid) else {
            bail!(ErrorCode::NoSuchKey, "No index build with UUID: {build_uuid}")
        };
        ensure!(self.has_votes(&build), ErrorCode::BadValue, "the index build {build_uuid} asks nobody");
        self.vote(&build, host).await
    }

    pub(crate) async fn is_quorum_there(&self, build: &ActiveBuild) -> Result<bool> {
        let mut known = None;
        let look = |entry: Option<BuildEntry>| {
            known = entry;
            None
        };
        self.change_entry(build.build_uuid, build.collection_uuid, look).await?;
        // Somebody has removed the entry: then nobody can vote any more.
        let Some(entry) = known else { return Ok(true) };
        Ok(entry.quorum.is_satisfied(&self.parts.members.membership(), &entry.ready_members))
    }

    /// `setIndexCommitQuorum`.
    pub async fn set_quorum(
        &self,
        namespace: &Namespace,
        collection_uuid: Uuid,
        index_names: &[String],
        quorum: CommitQuorum,
    ) -> Result<()> {
        let builds = self.of_collection(collection_uuid);
        let Some(build) = builds.iter().find(|build| build.index_names == index_names) else {
            bail!(
                ErrorCode::IndexNotFound,
                "Cannot find an index build on collection '{namespace}' with the provided index names"
            )
        };
        quorum.check_satisfiable(&self.parts.members.membership())?;
        let before = build.quorum.lock().clone();
        let first = index_names.first().map(String::as_str).unwrap_or_default();
        ensure!(
            before.is_enabled() && quorum.is_enabled(),
            ErrorCode::BadValue,
            "Commit quorum value can be changed only for index builds with commit quorum enabled, nss: '{namespace}' \
             first index name: '{first}'"
        );
        let changed = |entry: Option<BuildEntry>| entry.map(|entry| BuildEntry { quorum: quorum.clone(), ..entry });
        let entry = self.change_entry(build.build_uuid, collection_uuid, changed).await?;
        ensure!(
            entry.is_some(),
            ErrorCode::IndexNotFound,
            "Index build not yet started for the provided indexes in collection '{namespace}'."
        );
        *build.quorum.lock() = quorum;
        build.quorum_changed.notify_waiters();
        Ok(())
    }
}
