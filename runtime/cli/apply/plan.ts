/** What `svc apply` would change: the resources of the file compared with the service. */
import type { HttpClient } from '../../clients/client/http.js'
import { type Document, InvalidFile, REFERENCE, type Wanted } from './document.js'
import { addressOf, type Kind, KINDS, type Members } from './kinds.js'
import { type Caller, callerFor, type Tokens } from './requests.js'

export type Action = 'create' | 'update' | 'delete' | 'unchanged'

type MemberChange = {
  readonly member: string
  readonly before: unknown
  readonly after: unknown
}

export type Change = {
  readonly action: Action
  readonly kind: Kind
  readonly name: string
  readonly wanted?: Wanted
  /** Null before the creation. */
  readonly id: string | null
  /** As the service has it. Null before the creation. */
  readonly record: Members | null
  /** Members that differ. Drift, when the file did not change. */
  readonly members: readonly MemberChange[]
}

/**
 * Reads the service and compares. Writes nothing.
 * @throws InvalidFile with every fault that can be seen before a change.
 */
export async function planOf(
  document: Document,
  { client, tokens, prune }: { client: HttpClient; tokens: Tokens; prune: boolean },
): Promise<readonly Change[]> {
  const issuer = await issuerOf(client)
  const existing = new Map<Kind, readonly Members[]>()
  for (const kind of KINDS) {
    if (!kind.fixed && isNeeded(kind, document))
      existing.set(kind, await allOf(callerFor(client, kind, tokens), kind))
  }
  const faults: string[] = []
  const changes: Change[] = []
  const names = namedApplications(document, existing)
  const surroundings = { issuer, resourceScopes: scopesOf(document, existing) }
  for (const wanted of document.resources) {
    const { kind, name, path } = wanted
    const place = document.place(path)
    for (const reference of unresolved(wanted.members)) {
      if (!names.has(reference))
        faults.push(`${place}: there is no application ${JSON.stringify(reference)}`)
    }
    const found = kind.fixed
      ? [await fixedRecord(callerFor(client, kind, tokens), kind, name)]
      : existing.get(kind)!.filter((record) => record[kind.key!] === name)
    if (found.length > 1) {
      const ids = found.map(({ id }) => String(id)).join(', ')
      faults.push(`${place}: the tenant has ${found.length} of this ${kind.key}: ${ids}`)
      continue
    }
    const change = compared(resolvedBy(wanted, names), found[0])
    const body = bodyOf(change)
    const checked = kind.update === 'PATCH' ? { ...writable(change), ...body } : body
    const fault = await kind.fault?.(checked, surroundings)
    if (fault)
      faults.push(`${document.place([...path, ...pointed(fault.pointer)])}: ${fault.detail}`)
    changes.push(change)
  }
  if (faults.length > 0) throw new InvalidFile(faults)
  if (!prune) return changes
  const kept = new Set(
    document.resources.map(({ kind, name }) => JSON.stringify([kind.section, name])),
  )
  for (const kind of document.kinds) {
    for (const record of existing.get(kind) ?? []) {
      const name = String(record[kind.key!])
      if (kept.has(JSON.stringify([kind.section, name]))) continue
      changes.push({ action: 'delete', kind, name, id: String(record['id']), record, members: [] })
    }
  }
  return changes
}

/** The body of a change: all members for PUT and POST, those that differ for PATCH. */
export function bodyOf({ kind, wanted, action, record, members }: Change): Members {
  if (wanted === undefined || action === 'delete') return {}
  const { extra } = kind
  const always =
    extra === undefined || wanted.members[extra] === undefined
      ? {}
      : { [extra]: wanted.members[extra] }
  const secret =
    kind.secret === undefined || wanted.secret === undefined ? {} : { [kind.secret]: wanted.secret }
  if (action === 'create') return { ...wanted.members, ...secret }
  const lacksSecret = record?.['has_client_secret'] === false
  if (kind.update === 'PATCH')
    return {
      ...Object.fromEntries(members.map(({ member, after }) => [member, after])),
      ...always,
      ...(lacksSecret ? secret : {}),
    }
  const stated = new Set(Object.keys(wanted.members))
  const replaced = (kind.together ?? [])
    .filter((group) => group.some((each) => stated.has(each)))
    .flat()
  const before = Object.fromEntries(
    Object.entries(writable({ kind, record })).filter(([member]) => !replaced.includes(member)),
  )
  return { ...before, ...wanted.members }
}

/** The members of a record that a request may send. */
export function writable({ kind, record }: Pick<Change, 'kind' | 'record'>): Members {
  const known = Object.keys(kind.schema.shape)
  return Object.fromEntries(
    Object.entries(record ?? {}).filter(
      ([member]) => known.includes(member) && member !== kind.secret,
    ),
  )
}

/** What differs between a resource and a record. */
export function differences(
  { kind, members }: Pick<Wanted, 'kind' | 'members'>,
  record: Members,
): readonly MemberChange[] {
  return Object.entries(members)
    .filter(([member]) => member !== kind.extra && member !== 'organization_id')
    .filter(([member, after]) => canonical(after) !== canonical(record[member]))
    .map(([member, after]) => ({ member, before: record[member] ?? null, after }))
}

/** Names of applications that `client_ids` refers to and that have no client_id yet. */
export function unresolved(members: Members): readonly string[] {
  const ids = members['client_ids']
  if (!Array.isArray(ids)) return []
  return ids
    .filter((id): id is string => typeof id === 'string' && id.startsWith(REFERENCE))
    .map((id) => id.slice(REFERENCE.length))
}

/** With the client_ids of existing applications. */
export function resolvedBy(wanted: Wanted, names: ReadonlyMap<string, string | null>): Wanted {
  const ids = wanted.members['client_ids']
  if (!Array.isArray(ids)) return wanted
  const resolved = ids.map((id: unknown) => {
    if (typeof id !== 'string' || !id.startsWith(REFERENCE)) return id
    return names.get(id.slice(REFERENCE.length)) ?? id
  })
  return { ...wanted, members: { ...wanted.members, client_ids: resolved } }
}

function compared(wanted: Wanted, record: Members | undefined): Change {
  const { kind, name } = wanted
  if (record === undefined) {
    const members = Object.entries(wanted.members).map(([member, after]) => ({
      member,
      before: null,
      after,
    }))
    return { action: 'create', kind, name, wanted, id: null, record: null, members }
  }
  const members = differences(wanted, record)
  const lacksSecret = record['has_client_secret'] === false && wanted.secret !== undefined
  const action = members.length > 0 || lacksSecret ? 'update' : 'unchanged'
  return { action, kind, name, wanted, id: String(record['id'] ?? name), record, members }
}

/** Applications may be named by other resources, and applications may have scopes of API resources. */
function isNeeded(kind: Kind, { kinds, resources }: Document): boolean {
  if (kinds.includes(kind)) return true
  if (kind.section === 'applications')
    return resources.some(({ members }) => unresolved(members).length > 0)
  return kind.section === 'api_resources' && kinds.some(({ section }) => section === 'applications')
}

function namedApplications(
  document: Document,
  existing: ReadonlyMap<Kind, readonly Members[]>,
): ReadonlyMap<string, string | null> {
  const names = new Map<string, string | null>()
  for (const [{ section }, records] of existing) {
    if (section !== 'applications') continue
    for (const record of records) names.set(String(record['name']), String(record['client_id']))
  }
  for (const { kind, name } of document.resources)
    if (kind.section === 'applications' && !names.has(name)) names.set(name, null)
  return names
}

function scopesOf(
  document: Document,
  existing: ReadonlyMap<Kind, readonly Members[]>,
): readonly string[] {
  const planned = document.resources.filter(({ kind }) => kind.section === 'api_resources')
  const known = [...existing].filter(([{ section }]) => section === 'api_resources')
  return [...planned.map(({ members }) => members), ...known.flatMap(([, records]) => records)]
    .flatMap(({ scopes }) => (Array.isArray(scopes) ? (scopes as readonly Members[]) : []))
    .map(({ name }) => String(name))
}

/** All pages. */
async function allOf(call: Caller, { collection }: Kind): Promise<readonly Members[]> {
  const rows: Members[] = []
  let path: string | undefined = `${collection}?limit=200`
  while (path !== undefined) {
    const { body, headers } = await call('GET', path)
    rows.push(...(body as readonly Members[]))
    const next: string | undefined = /<([^>]+)>; rel="next"/.exec(headers['link'] ?? '')?.[1]
    const url: URL | undefined = next === undefined ? undefined : new URL(next)
    path = url && `${url.pathname}${url.search}`
  }
  return rows
}

async function fixedRecord(call: Caller, kind: Kind, name: string): Promise<Members> {
  const { body } = await call('GET', addressOf(kind, name))
  return { ...(body as Members), id: name }
}

async function issuerOf(client: HttpClient): Promise<string> {
  const path = '/.well-known/openid-configuration'
  const { status, body } = await client.request({ method: 'GET', path })
  const { issuer } = (body ?? {}) as Members
  if (status === 200 && typeof issuer === 'string') return issuer
  throw new Error(`GET ${path} answered ${status}`)
}

const pointed = (pointer: string) => pointer.split('/').slice(1)

/** Equal for values that mean the same: texts of a list are a set, and an absent member is null. */
function canonical(value: unknown): string {
  return JSON.stringify(sorted(value) ?? null)
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) {
    const items = value.map(sorted)
    return items.every((item) => typeof item === 'string') ? [...new Set(items)].toSorted() : items
  }
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, item]) => item !== undefined && item !== null)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, sorted(item)]),
  )
}
