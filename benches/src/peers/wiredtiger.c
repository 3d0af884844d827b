/*
 * A thin layer over WiredTiger's C interface: its methods are function pointers in structures with variadic arguments, which
 * Rust cannot call without a binding of every one of them. Only what the benchmark needs is here. Every function returns
 * WiredTiger's own code, zero when all is well; the caller turns it into words with shim_message.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <wiredtiger.h>

/* In the order of Rust's Table. */
static const char *const URIS[2] = {"table:documents", "table:index"};

/* What MongoDB gives to a collection and to an index: snappy in 32 KB leaves, and prefixes cut in 16 KB leaves. */
static const char *const OPTIONS[2] = {
    "key_format=u,value_format=u,type=file,memory_page_max=10m,split_pct=90,leaf_value_max=64MB,leaf_page_max=32k,"
    "checksum=on,block_compressor=snappy,log=(enabled=true)",
    "key_format=u,value_format=u,type=file,internal_page_max=16k,leaf_page_max=16k,checksum=on,prefix_compression=true,"
    "block_compressor=none,log=(enabled=true)",
};

typedef struct {
    WT_SESSION *session;
    WT_CURSOR *cursors[2];
} Shim;

const char *shim_message(int code) { return wiredtiger_strerror(code); }

int shim_connect(const char *home, uint64_t cache_mb, WT_CONNECTION **connection) {
    char config[1024];
    snprintf(config, sizeof(config),
        "create,cache_size=%lluMB,session_max=1000,eviction=(threads_min=4,threads_max=4),"
        "extensions=[libwiredtiger_snappy.so],log=(enabled=true,archive=true,compressor=snappy),"
        "checkpoint_sync=true,transaction_sync=(enabled=false,method=fsync),statistics=(fast)",
        (unsigned long long)cache_mb);
    return wiredtiger_open(home, NULL, config, connection);
}

int shim_disconnect(WT_CONNECTION *connection) { return connection->close(connection, NULL); }

int shim_create_tables(WT_CONNECTION *connection) {
    WT_SESSION *session;
    int code = connection->open_session(connection, NULL, NULL, &session);
    for (int table = 0; code == 0 && table < 2; ++table) code = session->create(session, URIS[table], OPTIONS[table]);
    if (code == 0) code = session->close(session, NULL);
    return code;
}

/* A session with a cursor on each table, or with a bulk cursor on one of them. */
int shim_open(WT_CONNECTION *connection, int bulk_table, Shim **opened) {
    Shim *shim = calloc(1, sizeof(Shim));
    int code = connection->open_session(connection, NULL, "isolation=snapshot", &shim->session);
    for (int table = 0; code == 0 && table < 2; ++table) {
        if (bulk_table >= 0 && bulk_table != table) continue;
        const char *config = bulk_table >= 0 ? "bulk" : NULL;
        code = shim->session->open_cursor(shim->session, URIS[table], NULL, config, &shim->cursors[table]);
    }
    *opened = shim;
    return code;
}

int shim_close(Shim *shim) {
    int code = 0;
    if (shim->session != NULL) code = shim->session->close(shim->session, NULL);
    free(shim);
    return code;
}

int shim_begin(Shim *shim) { return shim->session->begin_transaction(shim->session, NULL); }

int shim_commit(Shim *shim) { return shim->session->commit_transaction(shim->session, NULL); }

int shim_roll_back(Shim *shim) { return shim->session->rollback_transaction(shim->session, NULL); }

int shim_put(Shim *shim, int table, const void *key, size_t key_size, const void *value, size_t value_size) {
    WT_CURSOR *cursor = shim->cursors[table];
    WT_ITEM key_item = {.data = key, .size = key_size}, value_item = {.data = value, .size = value_size};
    cursor->set_key(cursor, &key_item);
    cursor->set_value(cursor, &value_item);
    return cursor->insert(cursor);
}

int shim_delete(Shim *shim, int table, const void *key, size_t key_size) {
    WT_CURSOR *cursor = shim->cursors[table];
    WT_ITEM key_item = {.data = key, .size = key_size};
    cursor->set_key(cursor, &key_item);
    return cursor->remove(cursor);
}

/* The value stays valid until shim_reset. */
int shim_search(Shim *shim, int table, const void *key, size_t key_size, const void **value, size_t *value_size) {
    WT_CURSOR *cursor = shim->cursors[table];
    WT_ITEM key_item = {.data = key, .size = key_size}, value_item;
    cursor->set_key(cursor, &key_item);
    int code = cursor->search(cursor);
    if (code == 0 && (code = cursor->get_value(cursor, &value_item)) == 0) {
        *value = value_item.data;
        *value_size = value_item.size;
    }
    return code;
}

int shim_step(Shim *shim, int table, int reverse, const void **key, size_t *key_size, const void **value,
    size_t *value_size) {
    WT_CURSOR *cursor = shim->cursors[table];
    WT_ITEM key_item, value_item;
    int code = reverse ? cursor->prev(cursor) : cursor->next(cursor);
    if (code == 0) code = cursor->get_key(cursor, &key_item);
    if (code == 0) code = cursor->get_value(cursor, &value_item);
    if (code == 0) {
        *key = key_item.data;
        *key_size = key_item.size;
        *value = value_item.data;
        *value_size = value_item.size;
    }
    return code;
}

int shim_reset(Shim *shim, int table) { return shim->cursors[table]->reset(shim->cursors[table]); }

int shim_flush_log(Shim *shim) { return shim->session->log_flush(shim->session, "sync=on"); }

int shim_checkpoint(Shim *shim) { return shim->session->checkpoint(shim->session, NULL); }

int shim_is_not_found(int code) { return code == WT_NOTFOUND; }
