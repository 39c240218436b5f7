/** Checks of PostgreSQL: reachability, roles, rights, TLS, clock, schema and LISTEN. */
import { randomBytes } from 'node:crypto'
import { Client } from 'pg'
import {
  compareSchema,
  isCompatible,
  readAppliedMigrations,
  readMigrationFiles,
  SchemaMismatch,
} from '../../../storage/platform/schema-version.js'
import { httpsUrl, PAGE } from '../../../actors/domain/entities/https-url.js'
import { targetRules } from '../../../actors/platform/outbound-http/outbound.js'
import { faultsUnder } from '../../../actors/platform/outbound-http/targets.js'
import { connectionOptions, planPools, tlsOptions } from '../../../storage/platform/pool-plan.js'
import {
  droppedTimeLimits,
  TIME_LIMITS_FIX,
} from '../../../storage/platform/portable/time-limits.js'
import type { DatabaseUrls } from '../../../storage/platform/settings.js'
import { isUnixSocket } from '../../../storage/platform/tls-mode.js'
import { databaseAddress } from '../../../storage/platform/unavailable.js'
import { systemClock } from '../../kernel/clock.js'
import {
  ANSWER_MS,
  type Check,
  fail,
  failInProduction,
  guarded,
  ok,
  type Patient,
  warn,
  whyOf,
  within,
} from './checks.js'

const SKEW_WARN_MS = 1_000
const SKEW_FAIL_MS = 30_000
const NOTIFY_MS = 2_000
const LOOPBACK = /^(localhost|127\.[0-9.]+|\[?::1\]?)$/
const RIGHTS = ['select', 'insert', 'update', 'delete'] as const

type Role = { readonly purpose: keyof DatabaseUrls; readonly url: string }

/** Runs the checks of every URL. Undefined URLs mean that the embedded database could not be started. */
export async function databaseChecks(patient: Patient): Promise<readonly Check[]> {
  const { urls } = patient
  if (urls === undefined)
    return [fail('database', 'no database can be reached', 'see the message above this line')]
  const reached = await guarded('database', 'start PostgreSQL, or correct database.url', () =>
    reachable(patient, rolesOf(urls)),
  )
  if (reached.some(({ verdict }) => verdict === 'fail')) return reached
  const checks = await Promise.all([
    ...rolesOf(urls)
      .filter(({ purpose }) => purpose !== 'migration' && purpose !== 'maintenance')
      .map((role) => roleChecks(patient, role)),
    limitChecks(patient, urls),
    tlsChecks(patient, rolesOf(urls)),
    clockChecks(patient, urls.runtime),
    schemaChecks(patient, urls.runtime),
    audienceChecks(patient, urls.runtime),
    secretChecks(patient, urls.runtime),
    addressChecks(patient, urls.runtime),
    urlChecks(patient, urls.runtime),
    listenChecks(patient, urls),
  ])
  return [...reached, ...checks.flat()]
}

/** One entry per different URL, with the first purpose that uses it. */
function rolesOf(urls: DatabaseUrls): readonly Role[] {
  const seen = new Map<string, Role>()
  for (const [purpose, url] of Object.entries(urls) as [keyof DatabaseUrls, string][])
    if (!seen.has(url)) seen.set(url, { purpose, url })
  return [...seen.values()]
}

async function connected<T>(
  { settings }: Pick<Patient, 'settings'>,
  url: string,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client({
    connectionString: url,
    application_name: 'svc doctor',
    connectionTimeoutMillis: ANSWER_MS,
    query_timeout: ANSWER_MS,
    ...tlsOptions(url, settings.database.require_ssl),
  })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return await work(client)
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** The key of the configuration for a URL. */
function keyOf(purpose: keyof DatabaseUrls): string {
  return purpose === 'runtime' ? 'database.url' : `database.${purpose}_url`
}

async function reachable(patient: Patient, roles: readonly Role[]): Promise<readonly Check[]> {
  const outcomes = await Promise.all(
    roles.map(async ({ purpose, url }) => {
      try {
        return await connected(patient, url, async (client) => {
          const { rows } = await client.query<{ version: string }>(
            `select current_setting('server_version') as version`,
          )
          return ok('database', `PostgreSQL ${rows[0]?.version} at ${databaseAddress(url)}`)
        })
      } catch (error) {
        return fail(
          'database',
          `cannot use ${keyOf(purpose)} at ${databaseAddress(url)}: ${whyOf(error)}`,
          `start PostgreSQL, or correct ${keyOf(purpose)}`,
        )
      }
    }),
  )
  const failed = outcomes.filter(({ verdict }) => verdict === 'fail')
  return failed.length > 0 ? failed : outcomes.slice(0, 1)
}

function roleChecks(patient: Patient, { purpose, url }: Role): Promise<readonly Check[]> {
  const name = 'database_role'
  const key = keyOf(purpose)
  return guarded(name, `correct ${key}`, () =>
    connected(patient, url, async (client) => {
      const { rows } = await client.query<{ role: string; free: boolean }>(
        `select current_user as role, rolsuper or rolbypassrls as free
         from pg_roles where rolname = current_user`,
      )
      const { role = '', free = false } = rows[0] ?? {}
      if (free)
        return failInProduction(
          patient,
          name,
          `the role ${role} of ${key} is a superuser or has BYPASSRLS: row-level security does not bind it`,
          'use a role without SUPERUSER and BYPASSRLS',
        )
      const lacking = await client.query<{ table: string }>(
        `select c.relname as table from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where n.nspname = current_schema() and c.relkind in ('r', 'p') and c.relname <> 'svc_migrations'
           and not (${RIGHTS.map((right) => `has_table_privilege(c.oid, '${right}')`).join(' and ')})
         order by 1 limit 3`,
      )
      if (lacking.rows.length > 0)
        return fail(
          name,
          `the role ${role} of ${key} lacks rights on ${lacking.rows.map(({ table }) => table).join(', ')}`,
          'run the migrations: they give the rights to the roles of the configuration',
        )
      return ok(name, `${role} (${key}) has the rights it needs and no more`)
    }),
  )
}

/** A pooler can refuse the time limits that a connection sets at its start, or drop them silently. */
function limitChecks(patient: Patient, urls: DatabaseUrls): Promise<readonly Check[]> {
  const name = 'database_time_limits'
  const { database } = patient.settings
  return guarded(name, TIME_LIMITS_FIX, async () => {
    if (database.prepared_statements === 'unnamed')
      return ok(name, 'each transaction sets its time limits')
    const planes = patient.settings.deployment.allow_all_in_one_runtime_plane
      ? (['all'] as const)
      : (['auth', 'control', 'async'] as const)
    const seen = new Set<string>()
    for (const plan of planes.flatMap((plane) => planPools(database, urls, plane))) {
      if (seen.has(plan.url)) continue
      seen.add(plan.url)
      const options = connectionOptions(database, plan.url, plan.statementTimeoutMs, 'svc doctor')
      const client = new Client({ ...options, connectionTimeoutMillis: ANSWER_MS })
      client.on('error', () => undefined)
      try {
        await client.connect()
        const dropped = await droppedTimeLimits(client, database, plan.statementTimeoutMs)
        if (dropped.length > 0)
          return fail(
            name,
            `${dropped.join(' and ')} have no effect at ${databaseAddress(plan.url)}, as behind a pooler`,
            TIME_LIMITS_FIX,
          )
      } finally {
        await client.end().catch(() => undefined)
      }
    }
    return ok(name, 'connections have the time limits of the settings')
  })
}

function tlsChecks(patient: Patient, roles: readonly Role[]): Promise<readonly Check[]> {
  const name = 'database_tls'
  return guarded(name, 'set database.require_ssl', async () => {
    const open: string[] = []
    for (const { url } of roles) {
      if (isUnixSocket(url)) continue
      const isEncrypted = await connected(patient, url, async (client) => {
        const { rows } = await client.query<{ ssl: boolean }>(
          'select ssl from pg_stat_ssl where pid = pg_backend_pid()',
        )
        return rows[0]?.ssl === true
      })
      const isLocal = LOOPBACK.test(new URL(url).hostname)
      if (!isEncrypted && (!isLocal || patient.isProduction)) open.push(databaseAddress(url))
    }
    return open.length === 0
      ? ok(name, 'every connection over a network is encrypted')
      : failInProduction(
          patient,
          name,
          `connections to ${open.join(', ')} are not encrypted`,
          'set database.require_ssl = true, or sslmode=verify-full in each URL',
        )
  })
}

function clockChecks(patient: Patient, url: string): Promise<readonly Check[]> {
  const name = 'clock'
  return guarded(name, 'synchronise both clocks with NTP', () =>
    connected(patient, url, async (client) => {
      const from = systemClock.now().getTime()
      const { rows } = await client.query<{ now: Date }>('select clock_timestamp() as now')
      return judgeClock((from + systemClock.now().getTime()) / 2, rows[0]!.now.getTime())
    }),
  )
}

/** Compares two clocks in Unix milliseconds. Exported for tests. */
export function judgeClock(ownMs: number, databaseMs: number): Check {
  const skewMs = Math.round(Math.abs(ownMs - databaseMs))
  const detail = `this machine and the database differ by ${skewMs} ms`
  const fix = 'synchronise both clocks with NTP'
  if (skewMs > SKEW_FAIL_MS) return fail('clock', detail, fix)
  return skewMs > SKEW_WARN_MS ? warn('clock', detail, fix) : ok('clock', detail)
}

function schemaChecks(patient: Patient, url: string): Promise<readonly Check[]> {
  const name = 'schema'
  const fix = 'run the migrations of this version (npm run migrate)'
  return guarded(name, fix, () =>
    connected(patient, url, async (client) => {
      const files = await readMigrationFiles()
      const verdict = compareSchema(files, await readAppliedMigrations(client))
      if (verdict.tag === 'current')
        return ok(name, `at ${files.at(-1)?.name}, as this version needs`)
      const { message } = new SchemaMismatch(verdict)
      return isCompatible(verdict)
        ? warn(name, message, 'start the newer version again, or stay until it is repaired')
        : fail(name, message, fix)
    }),
  )
}

const LISTED_MAX = 5

/** Audiences from before they were unique and owned. They keep working, and another tenant's tokens may have them too. */
function audienceChecks(patient: Patient, url: string): Promise<readonly Check[]> {
  const name = 'audiences'
  const fix = 'give the application another audience, or verify the domain of its host'
  return guarded(name, 'run the migrations of this version', () =>
    connected(patient, url, async (client) => {
      await client.query("select set_config('svc.scope', 'system', false)")
      const { rows } = await client.query<{ slug: string; id: string; audience: string }>(
        `with hosted as (
           select a.tenant_id, a.id, a.audience, t.slug, t.environment,
             rtrim(lower(substring(a.audience from '^(?:https?|wss?)://(?:[^/?@]*@)?([^/:?]+)')), '.') as host
           from applications a join tenants t on t.id = a.tenant_id
           where a.audience not like 'urn:svc:application:%')
         select h.slug, h.id, h.audience from hosted h
         where not exists (select from audience_claims c
             where c.tenant_id = h.tenant_id and c.application_id = h.id)
           or (h.host is not null and h.host not in ('localhost', '127.0.0.1', '[')
             and not (h.environment = 'sandbox' and h.host ~ '\\.(test|example|localhost)$')
             and not exists (select from verified_domains d
               where d.tenant_id = h.tenant_id and d.verified_at is not null
                 and (h.host = d.domain or h.host like '%.' || d.domain)))
         order by h.slug, h.id limit ${LISTED_MAX}`,
      )
      if (rows.length === 0) return ok(name, 'every audience belongs to one tenant')
      const listed = rows.map(({ slug, id, audience }) => `${audience} of ${id} (${slug})`)
      return warn(name, `not unique or not owned: ${listed.join(', ')}`, fix)
    }),
  )
}

/** Clients from before secrets were held to their place, or without a named method, that send them elsewhere. */
function secretChecks(patient: Patient, url: string): Promise<readonly Check[]> {
  const name = 'client_secrets'
  const fix =
    'set token_endpoint_auth_method to where the client sends its secret, or change the client'
  return guarded(name, 'run the migrations of this version', () =>
    connected(patient, url, async (client) => {
      await client.query("select set_config('svc.scope', 'system', false)")
      const { rows } = await client.query<{ slug: string; id: string; method: string }>(
        `select t.slug, a.id, a.token_endpoint_auth_method as method
         from applications a join tenants t on t.id = a.tenant_id
         where not a.held_to_method and a.secret_misplaced_at > now() - interval '30 days'
         order by a.secret_misplaced_at desc, a.id limit ${LISTED_MAX}`,
      )
      if (rows.length === 0) return ok(name, 'every client authenticates as it is registered')
      const listed = rows.map(({ slug, id, method }) => `${id} (${slug}, ${method})`)
      return warn(name, `authenticate otherwise than registered: ${listed.join(', ')}`, fix)
    }),
  )
}

/** Accounts whose address had its domain in letters, and that other accounts or the rule of domains hold back. */
function addressChecks(patient: Patient, url: string): Promise<readonly Check[]> {
  const name = 'mail_addresses'
  const fix = 'remove one of the two users: docs/reference/identity.md, Email addresses'
  return guarded(name, 'run the migrations of this version', () =>
    connected(patient, url, async (client) => {
      await client.query("select set_config('svc.scope', 'system', false)")
      const { rows } = await client.query<{ id: string; address: string }>(
        `select id, coalesce(typed_email, email) as address from accounts
         where typed_email is not null and email_key <> lower(email)
           or octet_length(split_part(email, '@', 2)) <> length(split_part(email, '@', 2))
         order by id limit ${LISTED_MAX}`,
      )
      if (rows.length === 0) return ok(name, 'every address is the key of one account')
      const listed = rows.map(({ id, address }) => `${address} of ${id}`)
      return warn(
        name,
        `another account has the address, or it has no A-labels: ${listed.join(', ')}`,
        fix,
      )
    }),
  )
}

/** URLs of applications from before they were judged as they are now. They stay, and the service does not call them. */
function urlChecks(patient: Patient, url: string): Promise<readonly Check[]> {
  const name = 'application_urls'
  const faultOf = faultsUnder(targetRules(patient.settings.vault))
  const isCalled = (text: string) => httpsUrl(text, { query: true }) !== null && !faultOf(text)
  return guarded(name, 'run the migrations of this version', () =>
    connected(patient, url, async (client) => {
      await client.query("select set_config('svc.scope', 'system', false)")
      const { rows } = await client.query<Record<string, string | null>>(
        `select t.slug, a.id, a.jwks_uri, a.backchannel_logout_uri, a.logo_uri
         from applications a join tenants t on t.id = a.tenant_id
         where coalesce(a.jwks_uri, a.backchannel_logout_uri, a.logo_uri) is not null
         order by t.slug, a.id`,
      )
      const judged = rows.flatMap(({ slug, id, logo_uri: logo = null, ...called }) => [
        ...Object.entries(called).map(([member, text]) => ({
          isRight: text === null || isCalled(text),
          words: `${member} of ${id} (${slug})`,
        })),
        {
          isRight: logo === null || httpsUrl(logo, PAGE) !== null,
          words: `logo_uri of ${id} (${slug})`,
        },
      ])
      const wrong = judged.filter(({ isRight }) => !isRight).map(({ words }) => words)
      if (wrong.length === 0) return ok(name, 'every URL of an application may be called')
      const listed = wrong.slice(0, LISTED_MAX).join(', ')
      return warn(name, `${wrong.length} are not called: ${listed}`, 'replace the URL')
    }),
  )
}

/** A notification of the runtime URL must reach a listener of the listener URL. */
function listenChecks(patient: Patient, urls: DatabaseUrls): Promise<readonly Check[]> {
  const name = 'listen'
  const fix =
    'give database.listener_url a direct or session-pooled connection to the same database (no transaction pooling)'
  if (patient.settings.database.announce === 'table')
    return Promise.resolve([ok(name, 'announcements are read from a table')])
  return guarded(name, fix, () =>
    connected(patient, urls.listener, async (listener) => {
      const channel = `svc_doctor_${randomBytes(8).toString('hex')}`
      const heard = new Promise<void>((resolve) => {
        listener.on('notification', (message) => {
          if (message.channel === channel) resolve()
        })
      })
      await listener.query(`listen ${channel}`)
      await connected(patient, urls.runtime, (client) => client.query(`notify ${channel}`))
      try {
        await within(NOTIFY_MS, heard)
      } catch {
        return fail(name, 'a notification does not arrive at database.listener_url', fix)
      }
      return ok(name, 'notifications arrive')
    }),
  )
}
