/**
 * Resident memory of a service whose process has served 10,000 sessions: each is an authorization code with an access,
 * an ID and a refresh token, which is rotated once. Sessions are in PostgreSQL, so this is the memory of what the process
 * keeps of them. It includes the client in the same process that asks for the codes.
 *
 *     npm run bench -- runtime/sessions
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '../../runtime/embedded/postgres.js'
import { silentLogger as log } from '../../runtime/kernel/log.js'
import { compare, publish } from '../harness.js'
import { startPeer } from '../oauth/peer-process.js'

const SESSIONS = 10_000
const BATCH = 500
const MIB = 1024 * 1024

const folder = await mkdtemp(join(tmpdir(), 'svc-bench-sessions-'))
const postgres = await startEmbeddedPostgres({ dataDir: join(folder, 'database'), log })

async function measured() {
  // A database belongs to the keys of one data folder.
  const svc = await startPeer('svc-server', [postgres.url, join(folder, 'svc')], false)
  try {
    const residentMib = async () => (await svc.spent()).rssBytes / MIB
    const before = await residentMib()
    const { credentials, tokenPath } = svc.peer
    for (let made = 0; made < SESSIONS; made += BATCH) {
      const tokens = await svc.refreshTokens(BATCH)
      const forms = tokens.map((token) => ({
        grant_type: 'refresh_token',
        refresh_token: token,
        ...credentials,
      }))
      await svc.spend(tokenPath, forms)
    }
    return { operations: 1, figures: { startMib: before, residentMib: await residentMib() } }
  } finally {
    await svc.stop()
  }
}

try {
  await publish(
    await compare({
      name: 'A service with 10,000 sessions',
      rounds: 2,
      contenders: [{ name: 'service', run: measured }],
    }),
  )
} finally {
  await postgres.stop()
  // As root the cluster is not in the data folder.
  await rm(postgres.folder, { recursive: true, force: true })
  await rm(folder, { recursive: true, force: true })
}
