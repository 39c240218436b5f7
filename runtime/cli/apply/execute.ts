/** Carries out a plan of `svc apply`. A refusal in the middle takes the earlier changes back. */
import type { HttpClient } from '../../clients/client/http.js'
import { reasonOf } from '../../kernel/text/reasons.js'
import { addressOf, KINDS, type Members } from './kinds.js'
import { REFERENCE } from './document.js'
import { bodyOf, type Change, differences, resolvedBy, unresolved, writable } from './plan.js'
import { callerFor, Refused, type Tokens } from './requests.js'
import type { IssuedSecret } from './secrets.js'

/** A change failed. */
export class ApplyFailed extends Error {
  /** Changes that could not be taken back, in words. */
  readonly left: readonly string[]
  constructor(message: string, left: readonly string[]) {
    super(message)
    this.left = left
  }
}

type Undo = { readonly what: string; readonly run: () => Promise<unknown> }

/** Where once-only secrets go. */
interface SecretKeeper {
  keep(secret: IssuedSecret): void
  /** The resource of the secret was taken back. */
  forget(secret: IssuedSecret): void
}

/**
 * Creates and updates kind by kind, then deletes.
 * @returns the id of each new resource by `keyOf`.
 * @throws ApplyFailed when the service refuses a change. Creations and updates before it were taken back. Deletions
 *   come last, and a refused one takes nothing back.
 */
export async function execute(
  changes: readonly Change[],
  { client, tokens, secrets }: { client: HttpClient; tokens: Tokens; secrets: SecretKeeper },
): Promise<ReadonlyMap<string, string>> {
  const undos: Undo[] = []
  /** Name of a new application -> its client_id. */
  const made = new Map<string, string>()
  const later: Change[] = []
  const ids = new Map<string, string>()
  const ordered = KINDS.flatMap((kind) => changes.filter((change) => change.kind === kind))
  try {
    for (const change of ordered)
      if (change.action === 'create' || change.action === 'update') await write(change)
    for (const change of later) await write(change)
  } catch (error) {
    throw new ApplyFailed(reasonOf(error), await takeBack(undos))
  }
  const left: string[] = []
  for (const change of ordered.toReversed()) {
    if (change.action !== 'delete') continue
    try {
      await callerFor(client, change.kind, tokens)('DELETE', addressOf(change.kind, change.id!))
    } catch (error) {
      const isGone = error instanceof Refused && error.status === 404
      if (!isGone) left.push(`${named(change)} is not deleted: ${reasonOf(error)}`)
    }
  }
  if (left.length > 0) throw new ApplyFailed('everything else is applied', left)
  return ids

  async function write(planned: Change): Promise<void> {
    const { kind } = planned
    const call = callerFor(client, kind, tokens)
    const wanted = resolvedBy(planned.wanted!, made)
    const change = {
      ...planned,
      wanted,
      members: planned.members.map((each) => ({
        ...each,
        after: each.member in wanted.members ? wanted.members[each.member] : each.after,
      })),
    }
    const isEarly = unresolved(wanted.members).length > 0
    const body = isEarly ? withoutReferences(bodyOf(change)) : bodyOf(change)
    const at = change.action === 'create' ? kind.collection : addressOf(kind, change.id!)
    const answer = await call(change.action === 'create' ? 'POST' : kind.update, at, body)
    const record = answer.body as Members
    const id = String(record['id'] ?? change.id)
    const value = record['client_secret'] ?? record['secret']
    const secret =
      typeof value === 'string'
        ? { section: kind.section, name: change.name, id, secret: value }
        : null
    // Stored immediately, because the service returns it once.
    if (secret !== null) secrets.keep(secret)
    const before = writable({ kind, record: change.record })
    const previous =
      kind.update === 'PUT'
        ? before
        : Object.fromEntries(change.members.map(({ member }) => [member, before[member] ?? null]))
    undos.unshift(
      change.action === 'create'
        ? {
            what: `${named(change)} is created`,
            run: async () => {
              await call('DELETE', addressOf(kind, id))
              if (secret !== null) secrets.forget(secret)
            },
          }
        : {
            what: `${named(change)} is changed`,
            run: () => call(kind.update, addressOf(kind, id), previous),
          },
    )
    if (change.action === 'create') ids.set(keyOf(change), id)
    if (kind.section === 'applications') made.set(change.name, String(record['client_id']))
    if (isEarly) {
      later.push({
        ...change,
        action: 'update',
        id,
        record,
        members: [
          {
            member: 'client_ids',
            before: record['client_ids'],
            after: wanted.members['client_ids'],
          },
        ],
      })
      return
    }
    const [different] = differences(wanted, record)
    if (different !== undefined)
      throw new Error(
        `the service keeps ${different.member} of ${named(change)} as ${JSON.stringify(different.before)}: write it so`,
      )
  }
}

function withoutReferences(body: Members): Members {
  const ids = body['client_ids'] as readonly unknown[]
  return {
    ...body,
    client_ids: ids.filter((id) => typeof id !== 'string' || !id.startsWith(REFERENCE)),
  }
}

/** The newest first. Returns what stays changed. */
async function takeBack(undos: readonly Undo[]): Promise<readonly string[]> {
  const left: string[] = []
  for (const { what, run } of undos) {
    try {
      await run()
    } catch (error) {
      const reason = reasonOf(error)
      left.push(reason === '' ? what : `${what}: ${reason}`)
    }
  }
  return left
}

/** Names a resource within a tenant. */
export function keyOf({ kind, name }: Pick<Change, 'kind' | 'name'>): string {
  return JSON.stringify([kind.section, name])
}

const named = ({ kind, name }: Change) =>
  name === '' ? kind.section : `${kind.section} ${JSON.stringify(name)}`
