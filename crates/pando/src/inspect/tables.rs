//! `tables`: one line for each.

use crate::error::Result;
use crate::show;
use pando_storage::{Engine, StorageError};
use std::io::Write;

pub fn run(engine: &dyn Engine, out: &mut dyn Write) -> Result<()> {
    let heading = ["table", "id", "records", "bytes", "on disk", "replicated"].map(str::to_owned).to_vec();
    let mut rows = vec![heading];
    for ident in engine.idents() {
        rows.push(row(engine, &ident)?);
    }
    write!(out, "{}", show::columns(&rows))?;
    Ok(writeln!(out, "{} tables", rows.len() - 1)?)
}

fn row(engine: &dyn Engine, ident: &str) -> std::result::Result<Vec<String>, StorageError> {
    let table = engine.open_table(ident)?;
    let size = engine.table_size(&table)?;
    Ok(vec![
        ident.to_owned(),
        table.id().to_string(),
        size.records.to_string(),
        size.bytes.to_string(),
        show::size(engine.table_disk_bytes(&table)?),
        if table.options().replicated { "yes" } else { "no" }.to_owned(),
    ])
}
