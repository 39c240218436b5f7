/** `svc seed`: fills a database with tenants for tests of size and speed. Never in production. */
import { randomBytes } from 'node:crypto'
import { open } from 'node:fs/promises'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { loadEngine } from '../../../actors/identity/passwords/engine.js'
import { analyze, databaseBytes } from '../../../storage/operations/seed-rows.js'
import { readEnvironment } from '../../kernel/config/environment.js'
import { errorText } from '../../process/error-text.js'
import { withTarget } from '../target.js'
import { type KeyTools, openKeyTools } from '../key-tools.js'
import type { Plan, TenantAccess } from './mixed.js'
import { seededRandom } from './seeded-random.js'
import { writeTenants } from './write-tenants.js'
import { type CommandHost, host } from '../output.js'
import { type Progress, progressBar } from '../progress.js'

const TENANTS_MAX = 100_000
const USERS_MAX = 10_000
/** Users that one transaction writes, about. */
const USERS_PER_TRANSACTION = 2_000
const TENANTS_PER_TRANSACTION = 50
const SEED_BYTES = 16
const PASSWORD_BYTES = 18
const SALT_BYTES = 16
/** The word after `--scenario`. */
const SCENARIOS = ['mixed'] as const

interface SeedCommandHost extends CommandHost {
  /** Undefined: a line for each thousand. */
  readonly progress?: Progress | undefined
  readonly open: () => Promise<KeyTools>
}

type Wishes = {
  readonly tenants: number
  readonly usersPerTenant: number
  readonly seed?: string
  readonly credentials?: string
  readonly json?: boolean
}

/** Adds `seed` to the program. */
export function seedCommand(program: Command, host: SeedCommandHost = processHost()): void {
  program
    .command('seed')
    .description('fill a database with tenants for tests of size; refused in production')
    .option('--tenants <count>', `tenants, at most ${TENANTS_MAX}`, count(1, TENANTS_MAX), 100)
    .option(
      '--users-per-tenant <count>',
      `users of each, at most ${USERS_MAX}`,
      count(1, USERS_MAX),
      100,
    )
    .addOption(
      new Option('--scenario <name>', 'what the tenants have').choices(SCENARIOS).default('mixed'),
    )
    .option(
      '--seed <text>',
      'ids, names and secrets follow from it; the same one continues an interrupted run',
    )
    .option('--credentials <file>', 'write a user and a client of each tenant to a new file')
    .option('--json', 'as JSON')
    .action(async (wishes: Wishes) => {
      try {
        const tools = await host.open()
        try {
          host.out(await seed(tools, wishes, host.progress ?? toldIn(host.err)))
        } finally {
          await tools.close()
        }
      } catch (error) {
        host.err(`svc seed: ${errorText(error)}\n`)
        host.exitWith(1)
      }
    })
}

function count(least: number, most: number) {
  return (text: string): number => {
    const value = Number(text)
    if (/^\d{1,9}$/.test(text) && value >= least && value <= most) return value
    throw new InvalidArgumentError(`a number from ${least} to ${most}`)
  }
}

async function seed(
  { database, sealer, clock, settings }: KeyTools,
  wishes: Wishes,
  progress: Progress,
): Promise<string> {
  const { tenants, usersPerTenant, credentials, json = false } = wishes
  const word = wishes.seed ?? randomBytes(SEED_BYTES).toString('hex')
  const password = seededRandom(word, 'password', 0).token(PASSWORD_BYTES)
  const plan: Plan = {
    seed: word,
    usersPerTenant,
    passwordHash: await hashOf(password, word, settings.auth),
    issuer: settings.oidc.issuer_url,
    now: clock.now(),
  }
  const file = credentials === undefined ? undefined : await open(credentials, 'wx', 0o600)
  const from = clock.monotonicMs()
  const total = { tenants: 0, rows: 0, events: 0 }
  let first: TenantAccess | undefined
  // Counts what the database needs on disk. It reads no tenant.
  const before = await database.system(databaseBytes)
  try {
    const step = Math.min(
      TENANTS_PER_TRANSACTION,
      Math.max(1, Math.floor(USERS_PER_TRANSACTION / usersPerTenant)),
    )
    for (let index = 0; index < tenants; index += step) {
      const size = Math.min(step, tenants - index)
      const indexes = Array.from({ length: size }, (_, nth) => index + nth)
      const written = await writeTenants({ database, sealer, clock }, plan, indexes)
      first ??= written.access[0]
      total.tenants += written.tenants
      total.rows += written.rows
      total.events += written.events
      const lines = written.access.map((access) => `${JSON.stringify({ ...access, password })}\n`)
      await file?.write(lines.join(''))
      progress(index + size, tenants)
    }
  } finally {
    await file?.close()
  }
  await database.system(analyze)
  const bytes = (await database.system(databaseBytes)) - before
  const secs = Math.round((clock.monotonicMs() - from) / 100) / 10
  const made = { seed: word, ...total, secs, bytes, password, first_tenant: first }
  if (json) return `${JSON.stringify(withTarget(made), null, 2)}\n`
  return [
    `${total.tenants} tenants, ${total.rows} rows and ${total.events} events in ${secs} s, ${mib(bytes)} MiB on disk.`,
    `Seed ${word}. All users have the password ${password}`,
    `The first tenant is ${first?.tenant_slug}, its owner ${first?.email}.`,
    '',
  ].join('\n')
}

/** Lines for a log. */
function toldIn(err: (text: string) => void): Progress {
  let told = 0
  return (done, all) => {
    if (Math.floor(done / 1000) > told) err(`svc seed: ${done} of ${all} tenants\n`)
    told = Math.floor(done / 1000)
  }
}

/** One hash for all users: a hash for each of a million would take days. */
async function hashOf(password: string, word: string, auth: KeyTools['settings']['auth']) {
  const engine = await loadEngine()
  const salt = seededRandom(word, 'salt', 0).bytes(SALT_BYTES)
  return engine.hash(Buffer.from(password, 'utf8'), salt, {
    memoryKib: auth.argon2_memory_kib,
    iterations: auth.argon2_iterations,
    parallelism: auth.argon2_parallelism,
  })
}

function mib(bytes: number): number {
  return Math.round(bytes / 2 ** 20)
}

function processHost(): SeedCommandHost {
  return {
    open: () =>
      openKeyTools({
        environment: readEnvironment(),
        cwd: process.cwd(),
        uid: process.getuid?.(),
        refuse: notForSeeding,
        isMaintenance: true,
      }),
    ...host,
    progress: process.stderr.isTTY ? progressBar('tenants') : undefined,
  }
}

/** Why these settings must not be seeded. Undefined: they may. */
export function notForSeeding({ security, kms }: KeyTools['settings']): string | undefined {
  if (security.production) return 'security.production is true: seeded users share one password'
  if (kms === undefined) {
    return 'configure [kms] first: seeded webhook secrets are sealed, and keys in memory end with a process'
  }
  return undefined
}
