//! WiredTiger, where its library was found at build time.
//!
//! Driven as MongoDB drives it: tables with MongoDB's options (snappy in 32 KB leaves, index prefixes cut), the log on and
//! compressed with snappy, small transactions at snapshot isolation, a transaction for every read, a cursor that is reset
//! after every get, bulk cursors for the load, four eviction threads. A commit that waits for the disk shares a flush of the
//! log with all that wait at the time, which MongoDB does above the engine.

#[cfg(not(wiredtiger))]
pub fn open(_directory: &std::path::Path, _cache_bytes: u64) -> Result<Box<dyn super::Peer>, crate::Error> {
    Err("built without WiredTiger: its header was not found".into())
}

#[cfg(wiredtiger)]
pub use with_library::open;

#[cfg(wiredtiger)]
mod with_library {
    use crate::Error;
    use crate::peers::{Change, Direction, Peer, Reader, Table, Wait, Writer};
    use crate::workload::BulkInput;
    use std::ffi::{CStr, CString, c_char, c_int, c_void};
    use std::path::Path;
    use std::ptr::{null, null_mut};
    use std::sync::{Condvar, Mutex, PoisonError};
    use std::time::Instant;

    type Connection = *mut c_void;
    type Shim = *mut c_void;

    unsafe extern "C" {
        fn shim_message(code: c_int) -> *const c_char;
        fn shim_connect(home: *const c_char, cache_mb: u64, connection: *mut Connection) -> c_int;
        fn shim_disconnect(connection: Connection) -> c_int;
        fn shim_create_tables(connection: Connection) -> c_int;
        fn shim_open(connection: Connection, bulk_table: c_int, opened: *mut Shim) -> c_int;
        fn shim_close(shim: Shim) -> c_int;
        fn shim_begin(shim: Shim) -> c_int;
        fn shim_commit(shim: Shim) -> c_int;
        fn shim_roll_back(shim: Shim) -> c_int;
        fn shim_put(shim: Shim, table: c_int, key: *const u8, key_size: usize, value: *const u8, size: usize) -> c_int;
        fn shim_delete(shim: Shim, table: c_int, key: *const u8, key_size: usize) -> c_int;
        fn shim_search(
            shim: Shim,
            table: c_int,
            key: *const u8,
            key_size: usize,
            value: *mut *const u8,
            size: *mut usize,
        ) -> c_int;
        fn shim_step(
            shim: Shim,
            table: c_int,
            reverse: c_int,
            key: *mut *const u8,
            key_size: *mut usize,
            value: *mut *const u8,
            size: *mut usize,
        ) -> c_int;
        fn shim_reset(shim: Shim, table: c_int) -> c_int;
        fn shim_flush_log(shim: Shim) -> c_int;
        fn shim_checkpoint(shim: Shim) -> c_int;
        fn shim_is_not_found(code: c_int) -> c_int;
    }

    fn check(code: c_int) -> Result<(), Error> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: WiredTiger returns a string for every code, valid until the thread's next call.
        let message = unsafe { CStr::from_ptr(shim_message(code)) };
        Err(format!("WiredTiger: {} ({code})", message.to_string_lossy()).into())
    }

    struct WiredTiger {
        connection: Connection,
        flushes: SharedFlushes,
    }

    /// Lets many wait for few flushes: one at a time, each for everybody who came before it started.
    #[derive(Default)]
    struct SharedFlushes {
        state: Mutex<FlushState>,
        finished: Condvar,
    }

    #[derive(Default)]
    struct FlushState {
        started: u64,
        finished: u64,
    }

    impl SharedFlushes {
        fn wait(&self, flush: impl Fn() -> Result<(), Error>) -> Result<(), Error> {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let needed = state.started + 1;
            while state.finished < needed {
                if state.started > state.finished {
                    state = self.finished.wait(state).unwrap_or_else(PoisonError::into_inner);
                    continue;
                }
                state.started += 1;
                drop(state);
                let result = flush();
                state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                state.finished = state.started;
                self.finished.notify_all();
                result?;
            }
            Ok(())
        }
    }

    // SAFETY: a WiredTiger connection may be used by many threads.
    unsafe impl Send for WiredTiger {}
    // SAFETY: the same.
    unsafe impl Sync for WiredTiger {}

    pub fn open(directory: &Path, cache_bytes: u64) -> Result<Box<dyn Peer>, Error> {
        let home = CString::new(directory.as_os_str().as_encoded_bytes())?;
        let mut connection = null_mut();
        // SAFETY: the string lives over the call; the connection is used only when the call succeeds.
        unsafe {
            check(shim_connect(home.as_ptr(), (cache_bytes >> 20).max(1), &mut connection))?;
            check(shim_create_tables(connection))?;
        }
        Ok(Box::new(WiredTiger { connection, flushes: SharedFlushes::default() }))
    }

    impl WiredTiger {
        fn session(&self, bulk_table: Option<Table>) -> Result<Session<'_>, Error> {
            let mut shim = null_mut();
            // SAFETY: the connection is open as long as `self`.
            let code = unsafe { shim_open(self.connection, bulk_table.map_or(-1, number), &mut shim) };
            let session = Session { shim, in_transaction: false, flushes: &self.flushes };
            check(code)?;
            Ok(session)
        }

        fn load<'a>(&self, table: Table, pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Result<(), Error> {
            let session = self.session(Some(table))?;
            pairs.into_iter().try_for_each(|(key, value)| session.put(table, key, value))
        }
    }

    fn number(table: Table) -> c_int {
        match table {
            Table::Documents => 0,
            Table::Index => 1,
        }
    }

    impl Peer for WiredTiger {
        fn bulk_load(&self, input: &BulkInput) -> Result<(), Error> {
            std::thread::scope(|scope| {
                let entries = input.index().iter().map(|(key, value)| (key.as_slice(), value.as_slice()));
                let index = scope.spawn(|| self.load(Table::Index, entries));
                let session = self.session(Some(Table::Documents))?;
                for (key, document) in input.documents() {
                    session.put(Table::Documents, &key, document)?;
                }
                index.join().map_err(|_| "a loading thread panicked")?
            })?;
            self.checkpoint()
        }

        fn reader(&self) -> Result<Box<dyn Reader + '_>, Error> {
            Ok(Box::new(self.session(None)?))
        }

        fn writer(&self) -> Result<Box<dyn Writer + '_>, Error> {
            Ok(Box::new(self.session(None)?))
        }

        fn flush_log(&self) -> Result<(), Error> {
            self.session(None)?.flush_log()
        }

        fn checkpoint(&self) -> Result<(), Error> {
            let session = self.session(None)?;
            // SAFETY: the session is open.
            check(unsafe { shim_checkpoint(session.shim) })
        }

        fn settle(&self) -> Result<Instant, Error> {
            Ok(Instant::now())
        }

        fn is_log_file(&self, path: &Path) -> bool {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            ["WiredTigerLog.", "WiredTigerPreplog.", "WiredTigerTmplog."].iter().any(|prefix| name.starts_with(prefix))
        }

        fn close(self: Box<Self>) -> Result<(), Error> {
            // SAFETY: no session outlives the borrow of `self`.
            check(unsafe { shim_disconnect(self.connection) })
        }
    }

    struct Session<'a> {
        shim: Shim,
        in_transaction: bool,
        flushes: &'a SharedFlushes,
    }

    impl Session<'_> {
        fn put(&self, table: Table, key: &[u8], value: &[u8]) -> Result<(), Error> {
            // SAFETY: WiredTiger copies key and value within the call.
            check(unsafe { shim_put(self.shim, number(table), key.as_ptr(), key.len(), value.as_ptr(), value.len()) })
        }

        fn delete(&self, table: Table, key: &[u8]) -> Result<(), Error> {
            // SAFETY: WiredTiger copies the key within the call.
            check(unsafe { shim_delete(self.shim, number(table), key.as_ptr(), key.len()) })
        }

        fn flush_log(&self) -> Result<(), Error> {
            // SAFETY: the session is open.
            check(unsafe { shim_flush_log(self.shim) })
        }

        fn end_snapshot(&mut self) -> Result<(), Error> {
            if !std::mem::take(&mut self.in_transaction) {
                return Ok(());
            }
            // SAFETY: the session is open.
            check(unsafe { shim_roll_back(self.shim) })
        }
    }

    impl Drop for Session<'_> {
        fn drop(&mut self) {
            // SAFETY: closed once; the shim is not used again. A running transaction is rolled back by it.
            unsafe { shim_close(self.shim) };
        }
    }

    impl Reader for Session<'_> {
        fn refresh(&mut self) -> Result<(), Error> {
            self.end_snapshot()?;
            // SAFETY: the session is open.
            check(unsafe { shim_begin(self.shim) })?;
            self.in_transaction = true;
            Ok(())
        }

        fn get(&mut self, table: Table, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
            let (mut value, mut size) = (null(), 0);
            // SAFETY: key and out-parameters live over the call; the value is valid until the cursor is reset.
            unsafe {
                let code = shim_search(self.shim, number(table), key.as_ptr(), key.len(), &mut value, &mut size);
                if shim_is_not_found(code) == 0 {
                    check(code)?;
                    see(std::slice::from_raw_parts(value, size));
                }
                check(shim_reset(self.shim, number(table)))?;
                Ok(code == 0)
            }
        }

        fn scan(
            &mut self,
            table: Table,
            direction: Direction,
            see: &mut dyn FnMut(&[u8], &[u8]),
        ) -> Result<u64, Error> {
            let reverse = c_int::from(direction == Direction::Reverse);
            let (mut key, mut key_size, mut value, mut size) = (null(), 0, null(), 0);
            let mut count = 0;
            // SAFETY: key and value are valid until the cursor's next move, which comes after they were shown.
            unsafe {
                loop {
                    let (shim, table) = (self.shim, number(table));
                    let code = shim_step(shim, table, reverse, &mut key, &mut key_size, &mut value, &mut size);
                    if shim_is_not_found(code) != 0 {
                        break;
                    }
                    check(code)?;
                    see(std::slice::from_raw_parts(key, key_size), std::slice::from_raw_parts(value, size));
                    count += 1;
                }
                check(shim_reset(self.shim, number(table)))?;
            }
            Ok(count)
        }
    }

    impl Writer for Session<'_> {
        fn commit(&mut self, changes: &[Change<'_>], wait: Wait) -> Result<(), Error> {
            // SAFETY: the session is open.
            check(unsafe { shim_begin(self.shim) })?;
            for change in changes {
                match *change {
                    Change::Put(table, key, value) => self.put(table, key, value)?,
                    Change::Delete(table, key) => self.delete(table, key)?,
                }
            }
            // SAFETY: the session is open.
            check(unsafe { shim_commit(self.shim) })?;
            if wait == Wait::No {
                return Ok(());
            }
            self.flushes.wait(|| self.flush_log())
        }
    }
}
