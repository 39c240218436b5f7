#!/usr/bin/env node
'use strict'
/** The `svc` command: sizes the thread pool, then runs what was compiled. */
const { threads } = require('./thread-pool.cjs')
process.env.UV_THREADPOOL_SIZE = threads
void import('../dist/runtime/main.js')
