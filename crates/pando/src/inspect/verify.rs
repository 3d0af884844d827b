//! `verify`: what holds and what does not.

use crate::error::{PandoError, Result};
use crate::show;
use pando_storage::{Damage, Engine};
use std::io::Write;

pub fn run(engine: &dyn Engine, out: &mut dyn Write) -> Result<()> {
    let report = engine.verify()?;
    writeln!(out, "read {}: {} blocks, {} log records", show::size(report.bytes), report.blocks, report.log_records)?;
    for damage in &report.damage {
        writeln!(out, "{}", told(damage))?;
    }
    match report.damage.len() {
        0 => Ok(writeln!(out, "everything holds")?),
        count => Err(PandoError::Damaged(count)),
    }
}

pub fn told(damage: &Damage) -> String {
    let table = damage.ident.as_ref().map(|ident| format!(" (table {ident})")).unwrap_or_default();
    format!("damaged: {} at offset {}{table}: {}", damage.file, damage.offset, damage.detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_storage::DamagedPart;

    #[test]
    fn damage_is_told_with_its_place() {
        let place = Damage {
            part: DamagedPart::Base,
            file: "7.run".into(),
            offset: 4096,
            ident: Some("people".into()),
            detail: "hash".into(),
        };
        assert_eq!(told(&place), "damaged: 7.run at offset 4096 (table people): hash");
        assert_eq!(told(&Damage { ident: None, ..place }), "damaged: 7.run at offset 4096: hash");
    }
}
