/**
 * Fixed windows against rate-limiter-flexible: one unit of one of 1,000 keys a call, none refused, in this
 * process, in Redis (needs redis-server) and in PostgreSQL.
 *
 *     node dist/bench/libraries/rate-limits.js
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'pg'
import { RateLimiterMemory, RateLimiterPostgres, RateLimiterRedis } from 'rate-limiter-flexible'
import { createClient } from 'redis'
import { LocalCounts } from '../../actors/operations/rate-limits/local-counts.js'
import { runMigrations } from '../../migrations/main.js'
import { startEmbeddedPostgres } from '../../runtime/embedded/postgres.js'
import { systemClock } from '../../runtime/kernel/clock.js'
import { silentLogger as log } from '../../runtime/kernel/log.js'
import { postgresCoordination } from '../../storage/platform/coordination/postgres.js'
import { redisCoordination } from '../../storage/platform/coordination/redis.js'
import { openBenchDatabase } from '../bench-database.js'
import { compare, publish, repeat, saturate } from '../harness.js'

const INFLIGHT = 32
const POOL_SIZE = 4
const LIMIT = 1_000_000_000
const WINDOW_SECS = 60
const LIBRARY = 'rate-limiter-flexible 11.4.0'
const sizes = { points: LIMIT, duration: WINDOW_SECS }
const window = { limit: LIMIT, windowSecs: WINDOW_SECS }
const keys = Array.from({ length: 1_000 }, (_, index) => `token:client-${index}`)
let turn = 0
const nextKey = () => keys[(turn = (turn + 1) % keys.length)]!

await inMemory()
await inRedis()
await inPostgres()

async function inMemory(): Promise<void> {
  const library = new RateLimiterMemory(sizes)
  const local = new LocalCounts(systemClock)
  const named = { name: 'token', ...window }
  await publish(
    await compare({
      name: 'Rate limits: in this process',
      reference: { name: LIBRARY, run: (ms) => saturate(ms, 1, () => library.consume(nextKey())) },
      contenders: [
        {
          name: 'rate-limits/local-counts.ts',
          run: (ms) => repeat(ms, () => local.take(nextKey(), named)),
        },
      ],
    }),
  )
}

async function inRedis(): Promise<void> {
  if (spawnSync('redis-server', ['--version']).status !== 0) return
  const port = await freePort()
  const args = ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
  const server = spawn('redis-server', args, { stdio: 'ignore' })
  try {
    await listening(port)
    const url = `redis://127.0.0.1:${port}`
    const client = await createClient({ url }).connect()
    const library = new RateLimiterRedis({ storeClient: client, useRedisPackage: true, ...sizes })
    const ours = await redisCoordination({
      settings: {
        mode: 'single',
        url,
        nodes: [],
        master_name: '',
        tls: false,
        pool_size: POOL_SIZE,
        connect_timeout_secs: 2,
        command_timeout_secs: 2,
      },
      log,
    })
    await compareTakes('Redis', library, (key) => ours.take(key, window))
    await ours.close()
    await client.close()
  } finally {
    server.kill()
    await once(server, 'exit')
  }
}

async function inPostgres(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-limits-'))
  const server = await startEmbeddedPostgres({ dataDir: join(folder, 'data'), log })
  const { url } = server
  await runMigrations({ url, log })
  const database = await openBenchDatabase(url, 'all', {
    max_connections: POOL_SIZE,
    identity_max_connections: 1,
  })
  const pool = new Pool({ connectionString: url, max: POOL_SIZE })
  // The server ends its last connections itself.
  pool.on('error', () => undefined)
  try {
    const library = await new Promise<RateLimiterPostgres>((resolve, reject) => {
      const limiter = new RateLimiterPostgres(
        { storeClient: pool, storeType: 'pool', tableName: 'bench_limits', ...sizes },
        (error) => (error ? reject(error) : resolve(limiter)),
      )
    })
    const ours = postgresCoordination(database)
    await compareTakes('PostgreSQL', library, (key) => ours.take(key, window))
  } finally {
    await pool.end()
    await database.close()
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

async function compareTakes(
  backend: string,
  library: { consume(key: string): Promise<unknown> },
  take: (key: string) => Promise<unknown>,
): Promise<void> {
  await publish(
    await compare({
      name: `Rate limits: ${backend}, ${INFLIGHT} calls in flight`,
      reference: {
        name: LIBRARY,
        run: (ms) => saturate(ms, INFLIGHT, () => library.consume(nextKey())),
      },
      contenders: [
        {
          name: 'storage/platform/coordination',
          run: (ms) => saturate(ms, INFLIGHT, () => take(nextKey())),
        },
      ],
    }),
  )
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

/** Waits until a connection to the port succeeds. */
async function listening(port: number): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const socket = connect(port, '127.0.0.1')
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    })
    socket.destroy()
    if (isOpen) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`nothing listens on port ${port}`)
}
