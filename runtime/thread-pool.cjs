'use strict'
/**
 * Sizes the thread pool of libuv (files, look-ups by getaddrinfo, compression) before anything uses it. Node reads the
 * size once, and its loader of ES modules uses the pool to read the first one: so this is CommonJS, and comes first.
 */
const POOL_THREADS_MIN = 16
/** What look-ups and files need while all hashes run. */
const THREADS_BESIDE_HASHES = 4

const hashes = Number(process.env.SVC_AUTH__ARGON2_MAX_CONCURRENT ?? 0) || 0
const wanted = Math.max(POOL_THREADS_MIN, hashes + THREADS_BESIDE_HASHES)
const threads = process.env.UV_THREADPOOL_SIZE ?? String(wanted)
process.env.UV_THREADPOOL_SIZE = threads

module.exports = { threads }
