/** `svc keys`: lists and rotates signing keys, and wraps data keys with the newest master key. */
import type { Command } from 'commander'
import {
  SIGNING_ALGORITHMS,
  type SigningAlgorithm,
} from '../../actors/oauth/signing-keys/protocol.js'
import { carryOut } from '../../actors/oauth/signing-keys/rotation.js'
import { planRotation } from '../../actors/oauth/signing-keys/rules.js'
import { auditRotation } from '../../actors/oauth/signing-keys/audit.js'
import { countRotations } from '../../storage/platform/sealing/data-key-rotations.js'
import {
  countDataKeysByMaster,
  listDataKeyOwners,
} from '../../storage/platform/sealing/data-keys.js'
import { resealAll } from '../../storage/platform/sealing/reseal.js'
import { SYSTEM_TENANT_ID } from '../../storage/platform/sealing/seal.js'
import {
  listSigningKeys,
  listTenantSigningKeys,
  type TenantSigningKeyRow,
} from '../../storage/oauth/signing-keys.js'
import { readEnvironment } from '../kernel/config/environment.js'
import { silentLogger } from '../kernel/log.js'
import { errorText } from '../process/error-text.js'
import { type KeyTools, openKeyTools } from './key-tools.js'
import { resultText } from './target.js'
import { type CommandHost, lineHost } from './output.js'

interface KeysCommandHost extends CommandHost {
  readonly open: () => Promise<KeyTools>
}

/** Adds `keys` with its sub-commands to the program. */
export function keysCommand(program: Command, host: KeysCommandHost = processHost()): void {
  const keys = program.command('keys').description('signing keys and data keys of this deployment')
  keys
    .command('list')
    .description('signing keys of the service and of tenants, data keys by master key')
    .option('--json', 'as JSON')
    .action(({ json = false }: { json?: boolean }) =>
      withTools(host, (resources) => list(resources, json)),
    )
  keys
    .command('rotate')
    .description('replace the current signing keys; tokens already signed stay valid')
    .option('--algorithm <algorithm>', `only this algorithm: ${SIGNING_ALGORITHMS.join(', ')}`)
    .option(
      '--compromised',
      'withdraw the current keys immediately: every token they signed becomes invalid',
    )
    .option('--json', 'as JSON')
    .action(
      ({
        algorithm,
        compromised = false,
        json = false,
      }: {
        algorithm?: string
        compromised?: boolean
        json?: boolean
      }) =>
        withTools(host, (resources) =>
          rotate(resources, algorithmOf(algorithm), compromised, json),
        ),
    )
  keys
    .command('rewrap')
    .description('wrap every data key under the newest master key')
    .option('--json', 'as JSON')
    .action(({ json = false }: { json?: boolean }) =>
      withTools(host, (resources) => rewrap(resources, json)),
    )
  keys
    .command('rotate-data')
    .description('create a new data key; older sealed values are sealed again in the background')
    .option('--tenant <id>', 'for this tenant')
    .option('--all', 'for every tenant and for the service itself')
    .option('--json', 'as JSON')
    .action((asked: { tenant?: string; all?: boolean; json?: boolean }) =>
      withTools(host, (resources) => rotateData(resources, asked)),
    )
  keys
    .command('reseal')
    .description('seal values of older data keys again now; running services may continue')
    .option('--json', 'as JSON')
    .action(({ json = false }: { json?: boolean }) =>
      withTools(host, (resources) => reseal(resources, json)),
    )
}

/** Lines of tenants that the table has. The JSON has all. */
const TENANT_LINES_MAX = 100

type ShownKey = Omit<TenantSigningKeyRow, 'tenantId' | 'tenantSlug'>
const shownKey = (row: ShownKey) => ({
  kid: row.kid,
  algorithm: row.algorithm,
  state: row.state,
  created_at: row.createdAt,
  current_since: row.currentSince,
  verifiable_until: row.verifiableUntil,
})

const day = (date: Date | null) => date?.toISOString().slice(0, 16).replace('T', ' ') ?? '-'

function keyLine(key: ReturnType<typeof shownKey>, tenant = ''): string {
  const columns = [
    key.kid.padEnd(44),
    key.algorithm.padEnd(6),
    key.state.padEnd(8),
    day(key.created_at).padEnd(17),
    day(key.current_since).padEnd(17),
    day(key.verifiable_until).padEnd(17),
    tenant,
  ]
  return columns.join(' ').trimEnd()
}

async function list({ database, kms }: KeyTools, json: boolean): Promise<string> {
  const rows = await database.tenant(SYSTEM_TENANT_ID, (tx) =>
    listSigningKeys(tx, SYSTEM_TENANT_ID),
  )
  const signing = rows.map(shownKey)
  const ofTenants = (
    await database.system((tx) => listTenantSigningKeys(tx, SYSTEM_TENANT_ID))
  ).map((row) => ({ tenant_id: row.tenantId, tenant_slug: row.tenantSlug, ...shownKey(row) }))
  const unlisted = ofTenants.length - TENANT_LINES_MAX
  // Crosses tenants, for counts only.
  const data = (await database.system(countDataKeysByMaster)).map((row) => ({
    master_key_id: row.masterKeyId,
    data_keys: row.dataKeys,
  }))
  const health = await kms.health()
  const text = [
    'SIGNING KEY                                  ALG    STATE    CREATED           SINCE             UNTIL             TENANT',
    ...signing.map((key) => keyLine(key)),
    ...ofTenants.slice(0, TENANT_LINES_MAX).map((key) => keyLine(key, key.tenant_slug)),
    ...(unlisted > 0 ? [`... and ${unlisted} keys of tenants more: --json lists all`] : []),
    '',
    'MASTER KEY                    DATA KEYS',
    ...data.map((row) => `${row.master_key_id.padEnd(29)} ${row.data_keys}`),
    '',
    health.state === 'up'
      ? `The kms is available. It wraps with ${health.masterKeyIds.at(-1)}.`
      : `The kms is unavailable: ${health.reason}`,
  ].join('\n')
  const result = {
    signing_keys: signing,
    tenant_signing_keys: ofTenants,
    data_keys: data,
    kms: health,
  }
  return resultText(json, result, text)
}

async function rotate(
  { database, sealer, clock, random }: KeyTools,
  algorithm: SigningAlgorithm | undefined,
  compromised: boolean,
  json: boolean,
): Promise<string> {
  const now = clock.now()
  const outcome = await carryOut(
    { database, sealer },
    now,
    (rows) => planRotation(rows, now, { algorithm, compromised }),
    auditRotation(random, now, null),
  )
  if (outcome.tag === 'too_early') {
    throw new Error(
      `verifiers may not know the next key yet: try again in ${outcome.waitSecs} s, or ` +
        'use --compromised if the current key has leaked',
    )
  }
  const { promoted } = outcome
  const text = `${promoted} keys were replaced. Running services sign with the new ones immediately.`
  return resultText(json, { replaced: promoted }, text)
}

/**
 * A kms uses a new master key only seconds after its creation: the output names the wrapping key.
 */
async function rewrap({ kms, sealer }: KeyTools, json: boolean): Promise<string> {
  const count = await sealer.rewrap()
  const health = await kms.health()
  const id = health.state === 'up' ? health.masterKeyIds.at(-1) : undefined
  const wraps = id === undefined ? '' : ` All are wrapped by ${id} now.`
  const text = `${count} data keys were wrapped again.${wraps}`
  return resultText(json, { wrapped_again: count, master_key_id: id ?? null }, text)
}

async function rotateData(
  { database, sealer }: KeyTools,
  { tenant, all = false, json = false }: { tenant?: string; all?: boolean; json?: boolean },
): Promise<string> {
  if ((tenant === undefined) !== all) throw new Error('name --tenant <id> or --all')
  // Crosses tenants: with --all every tenant gets a new key.
  const owners = await database.system(listDataKeyOwners)
  const chosen = owners.filter((one) => all || one === tenant?.toLowerCase())
  if (chosen.length === 0) throw new Error('that tenant has no data key')
  for (const one of chosen) await sealer.rotate(one)
  const text = `${chosen.length} data keys were created. Running services seal with them within a minute.`
  return resultText(json, { created: chosen.length }, text)
}

async function reseal(resources: KeyTools, json: boolean): Promise<string> {
  const count = await resealAll({ ...resources, log: silentLogger })
  const { open, unopened } = await resources.database.system(countRotations)
  const broken = unopened > 0 ? ` ${unopened} values cannot be unsealed.` : ''
  const text = `${count} values were sealed again; ${open} rotations are not finished yet.${broken}`
  return resultText(
    json,
    { sealed_again: count, unfinished_rotations: open, broken: unopened },
    text,
  )
}

function algorithmOf(word: string | undefined): SigningAlgorithm | undefined {
  if (word === undefined) return undefined
  const algorithm = SIGNING_ALGORITHMS.find((each) => each.toLowerCase() === word.toLowerCase())
  if (algorithm === undefined) throw new Error(`unknown algorithm ${word}`)
  return algorithm
}

async function withTools(
  { open, out, err, exitWith }: KeysCommandHost,
  work: (resources: KeyTools) => Promise<string>,
): Promise<void> {
  try {
    const resources = await open()
    try {
      out(await work(resources))
    } finally {
      await resources.close()
    }
  } catch (error) {
    err(`svc keys: ${errorText(error)}`)
    exitWith(1)
  }
}

function processHost(): KeysCommandHost {
  return {
    open: () =>
      openKeyTools({
        environment: readEnvironment(),
        cwd: process.cwd(),
        uid: process.getuid?.(),
      }),
    ...lineHost,
  }
}
