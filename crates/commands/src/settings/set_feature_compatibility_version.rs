//! `setFeatureCompatibilityVersion`: from which version on data may use what is new. It waits for a majority.

use super::compatibility::{DISABLE_TRANSITION_TO_LAST_CONTINUOUS, REQUIRE_CONFIRM, State, Version};
use super::{Kept, wait_for_majority};
use crate::arguments::SafeBool;
use crate::{Access, Action, Class, CommandRow, FEATURE_COMPATIBILITY_VERSION, Invocation, SecondaryOk, run_boxed};
use pando_base::{Component, ErrorCode, Result, Severity, Timestamp, ensure, log};
use pando_doc::DocRef;

pub(super) const ROW: CommandRow = CommandRow {
    name: "setFeatureCompatibilityVersion",
    help: "Set the featureCompatibilityVersion used by this cluster. If set to '6.0', then features introduced in versions \
           greater than '6.0' will be disabled.",
    run: |invocation, _| run_boxed(run(invocation)),
    class: Class::Write,
    is_admin_only: true,
    secondary_ok: SecondaryOk::Never,
    takes_write_concern: true,
    privileges: Access::Cluster(&[Action::SetFeatureCompatibilityVersion]),
    ..CommandRow::DEFAULT
};

crate::arguments! {
    struct Arguments<'a> of "setFeatureCompatibilityVersion" {
        confirm: SafeBool = "confirm" or SafeBool(false),
        from_config_server: SafeBool = "fromConfigServer" or SafeBool(false),
        phase: Option<&'a str> = "phase",
        change_timestamp: Option<Timestamp> = "changeTimestamp",
    }
}

async fn run(invocation: &Invocation) -> Result<()> {
    let arguments = Arguments::parse(&invocation.request)?;
    let requested = Version::parse(invocation.target_text()?)?;
    let (data, parameters) = (invocation.data()?, &invocation.node.parameters);
    let _alone = invocation.context.interruptible(data.settings.changing.lock()).await?;
    let present = State::of_shown(DocRef::trusted(&parameters.get(&FEATURE_COMPATIBILITY_VERSION)))?;
    let is_confirmed = arguments.confirm.0 || arguments.from_config_server.0;
    if parameters.get(&REQUIRE_CONFIRM) && !is_confirmed {
        return Err(unconfirmed(requested, present.version()));
    }
    ensure!(
        arguments.phase.is_none(),
        ErrorCode::location(5563600),
        "'phase' field is only valid to be specified on shards"
    );
    if present == State::At(requested) {
        return wait_for_majority(invocation, data).await;
    }
    let goes_to_last_continuous = !parameters.get(&DISABLE_TRANSITION_TO_LAST_CONTINUOUS);
    ensure!(
        present.permits(requested, goes_to_last_continuous),
        ErrorCode::location(5147403),
        "cannot set featureCompatibilityVersion to '{}' while featureCompatibilityVersion is '{}'",
        requested.as_str(),
        present.describe()
    );
    tell(invocation, 6744300, "setFeatureCompatibilityVersion command called", present, requested);
    let mut operation = invocation.operation()?;
    let namespace = Kept::Compatibility.namespace();
    if present.version() != requested {
        let on_the_way = State::Between { from: present.version(), to: requested };
        crate::stored::save(data, &mut operation, namespace, &on_the_way.to_stored()).await?;
    }
    // From here on nothing new comes that the lower version does not know. What fails stays on the way; one may turn round.
    super::gate::check_downgrade(data, requested)?;
    crate::stored::save(data, &mut operation, namespace, &State::At(requested).to_stored()).await?;
    drop(operation);
    tell(invocation, 6744302, "setFeatureCompatibilityVersion succeeded", present, requested);
    wait_for_majority(invocation, data).await
}

fn unconfirmed(requested: Version, present: Version) -> pando_base::Error {
    let reason = match requested > present {
        true => format!(
            "Once you have upgraded to {}, you will not be able to downgrade FCV and binary version without support \
             assistance. Please re-run this command with 'confirm: true' to acknowledge this and continue with the FCV \
             upgrade.",
            requested.as_str()
        ),
        false => "Once you have downgraded the FCV, if you choose to downgrade the binary version, it will require support \
                  assistance. Please re-run this command with 'confirm: true' to acknowledge this and continue with the FCV \
                  downgrade."
            .to_owned(),
    };
    pando_base::Error::location(7369100, reason)
}

fn tell(invocation: &Invocation, id: i32, message: &'static str, from: State, to: Version) {
    let log = invocation.node.log.with_context(invocation.connection.client.description());
    let direction = if to > from.version() { "upgrade" } else { "downgrade" };
    log!(
        log,
        Severity::Info,
        Component::Command,
        id,
        message,
        "upgradeOrDowngrade" = direction,
        "serverType" = "replica set/standalone",
        "fromVersion" = from.describe(),
        "toVersion" = to.as_str()
    );
}
