/** How the console shows members of the API: labels, and values by their kind. */
import { shownEmail } from '../../../actors/domain/email.js'
import { isMessage, type MessageKey } from '../../pages/texts/texts.js'
import type { Language } from '../../pages/platform/language.js'
import { type ConsoleResource, isItem, type Item, valueAt } from './declaration.js'
import type { ApiAnswer } from './api.js'

/** A label of the catalogue, or the English words of a member name. */
type Label = { readonly key: MessageKey | null; readonly text: string }

/** How words of names are written that are no words of English. */
const SPELLED: Readonly<Record<string, string>> = {
  aws: 'AWS',
  github: 'GitHub',
  hmac: 'HMAC',
  http: 'HTTP',
  mcp: 'MCP',
  oauth: 'OAuth',
  uri: 'URI',
  uris: 'URIs',
  url: 'URL',
  utf8: 'UTF-8',
}

/** The first of these keys that has a text, or English words. */
function wordsOf(keys: readonly string[], name: string): Label {
  const text = name
    .replaceAll(/[_.-]+/g, ' ')
    .replaceAll(/[a-z0-9]+/g, (word) => SPELLED[word] ?? word)
    .replaceAll(/\b(?:rfc|sha)(?=\d)/g, (word) => `${word.toUpperCase()}-`)
  return {
    key: keys.find(isMessage) ?? null,
    text: text.charAt(0).toUpperCase() + text.slice(1),
  }
}

export function labelOf(member: string): Label {
  const path = member.replaceAll(/\.\d+(?=\.)/g, '')
  const name = path.split('.').at(-1)!
  return wordsOf([`member.${path}`, `member.${name}`], name)
}

export const labelSaid = ({ key, text }: Label, { say }: Language): string =>
  key === null ? text : say(key)

export const labelText = (member: string, language: Language): string =>
  labelSaid(labelOf(member), language)

/** The word of a status, or of another value of a few known ones. */
export const wordOf = (value: string): Label => wordsOf([`status.${value}`], value)

/** The words of an event type such as `admin.user.created`. */
export const eventWords = (type: string): Label =>
  wordsOf([`event.${type}`], type.replace(/^(?:admin|auth)\./, ''))

/** Where an object of the tenant is shown. */
export type Named = { readonly name: string; readonly path: string | null }
/** What a page knows besides the value: its language, and the names of objects by id. */
export type Reading = {
  readonly language: Language
  readonly names?: ReadonlyMap<string, Named> | undefined
}

type Tone = 'ok' | 'warn' | 'bad' | ''

type Value =
  | { readonly kind: 'none' }
  | { readonly kind: 'time'; readonly moment: Date }
  | { readonly kind: 'flag'; readonly on: boolean }
  | { readonly kind: 'list'; readonly texts: readonly string[]; readonly isScopes: boolean }
  | { readonly kind: 'status'; readonly text: string; readonly tone: Tone; readonly label: Label }
  | { readonly kind: 'named'; readonly name: string; readonly path: string | null }
  | { readonly kind: 'event'; readonly text: string; readonly label: Label }
  | { readonly kind: 'members'; readonly members: readonly Fact[] }
  | { readonly kind: 'many'; readonly values: readonly Value[] }
  | { readonly kind: 'id' | 'code' | 'image' | 'text'; readonly text: string }

type Status = Extract<Value, { kind: 'status' }>

/** A member with its label and value. */
type Fact = { readonly name: string; readonly label: Label; readonly value: Value }

const TIME = /^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/
const STATUS = new Set([
  'status',
  'outcome',
  'state',
  'environment',
  'health',
  'receiver_type',
  'template',
])
/** Members whose known values are said in words. */
const WORDS = new Set([
  'kind',
  'approval',
  'auth_scheme',
  'credential_type',
  'grantee_type',
  'window',
])
const ON = new Set(['active', 'enabled', 'ready', 'valid'])
const ID =
  /(?:^|_)(?:id|ids|sub|kid|hash|sha256|fingerprint|did|sequence|serial)$|^(?:previous_|last_)?hash$|^event_number$/
const CODE = /(?:^|_)(?:uri|uris|url|issuer|audience|resource|domain|address|algorithm)$/
/** Members with an email address. */
const EMAIL = /(?:^|[._])email$/
/** Members with the subject of a person. */
const SUBJECT = /^(?:sub|subject|decided_by)$/
/** Members with the type of an event. */
const EVENT = /^(?:event_)?type$/
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/

const TONES: Readonly<Record<string, Tone>> = {
  ...tones(
    'ok',
    'invite create healthy active succeeded success paid verified delivered valid completed accepted ok won approved used',
  ),
  ...tones(
    'warn',
    'needs_reauthorization client_closed invited pre_provisioned pending retrying deprecated processing past_due open',
  ),
  ...tones(
    'bad',
    'refused failing suspended failed failure denied revoked expired removed disabled frozen lost ' +
      'upstream_error budget_exhausted idle_timeout hop_timeout',
  ),
}

function tones(tone: Tone, words: string): Record<string, Tone> {
  return Object.fromEntries(words.split(' ').map((word) => [word, tone]))
}

export const statusOf = (text: string): Status => ({
  kind: 'status',
  text,
  tone: TONES[text] ?? '',
  label: wordOf(text),
})

/** The value of a member. An amount is shown with its currency. */
export function valueOf(item: Item, member: string, reading: Reading): Value {
  const value = valueAt(item, member)
  const name = member.split('.').at(-1)!
  if (value === null || value === undefined || value === '') return { kind: 'none' }
  if (typeof value === 'boolean')
    return ON.has(name) ? statusOf(value ? 'active' : 'inactive') : { kind: 'flag', on: value }
  if (Array.isArray(value)) return listValue(name, value, reading)
  if (isItem(value)) {
    const party = partyIn(value)
    if (party !== null) return partyValue(party, reading)
    const members = membersOf(value, reading)
    return members.length === 0 ? { kind: 'none' } : { kind: 'members', members }
  }
  const text = String(value)
  const { currency } = item
  if (name.endsWith('_minor') && typeof value === 'number' && typeof currency === 'string')
    return { kind: 'text', text: reading.language.money(value, currency) }
  // A name that a person chose can look like a time.
  const moment = TIME.test(text) ? new Date(text) : null
  if (moment !== null && !Number.isNaN(moment.getTime())) return { kind: 'time', moment }
  const { media_type: mediaType } = item
  const isImage = name === 'url' && typeof mediaType === 'string' && mediaType.startsWith('image/')
  if (isImage || text.startsWith('data:image/')) return { kind: 'image', text }
  if (STATUS.has(name)) return statusOf(text)
  if (WORDS.has(name) && isMessage(`status.${text}`)) return { ...statusOf(text), tone: '' }
  if (EVENT.test(name) && text.includes('.'))
    return { kind: 'event', text, label: eventWords(text) }
  return textValue(name, text, reading)
}

type Party = { readonly id: string; readonly type: string }

/** A person or thing that is mentioned by id and type, or null. */
function partyIn(value: Item): Party | null {
  const id = value['id'] ?? value['sub']
  const type = value['type'] ?? value['subject_type']
  const isParty = Object.keys(value).length === 2
  return isParty && typeof id === 'string' && typeof type === 'string' ? { id, type } : null
}

/** Its name, or the word of its type. */
function partyValue({ id, type }: Party, { names, language }: Reading): Value {
  const named = names?.get(id)
  return named === undefined
    ? { kind: 'text', text: labelSaid(wordOf(type), language) }
    : { kind: 'named', ...named }
}

/** The ids of people and things that an object mentions. */
export function mentionedIn(item: Item): readonly string[] {
  return Object.entries(item).flatMap(([name, value]) => {
    if (typeof value === 'string')
      return SUBJECT.test(name) || (ID.test(name) && UUID.test(value)) ? [value] : []
    const some = Array.isArray(value) ? value : [value]
    return some.filter(isItem).flatMap(mentionedIn)
  })
}

function textValue(name: string, text: string, { names }: Reading): Value {
  const named = names?.get(text)
  if (named !== undefined) return { kind: 'named', ...named }
  if (ID.test(name) || UUID.test(text)) return { kind: 'id', text }
  return {
    kind: CODE.test(name) ? 'code' : 'text',
    text: EMAIL.test(name) ? shownEmail(text) : text,
  }
}

function listValue(name: string, value: readonly unknown[], reading: Reading): Value {
  if (value.length === 0) return { kind: 'none' }
  if (value.every((one) => typeof one === 'string')) {
    if (!ID.test(name)) return { kind: 'list', texts: value, isScopes: name.endsWith('scopes') }
    return { kind: 'many', values: value.map((one) => textValue(name, one, reading)) }
  }
  return { kind: 'many', values: value.map((one) => valueOf({ [name]: one }, name, reading)) }
}

/** The name of an object: the first of its naming members that has a value, otherwise its id. */
export function nameOf(item: Item, { named, id = 'id' }: ConsoleResource): string {
  const member = [...named, id].find((name) => valueAt(item, name))
  const text = member === undefined ? '' : String(valueAt(item, member))
  if (member === undefined) return text
  if (EVENT.test(member)) return eventWords(text).text
  return EMAIL.test(member) ? shownEmail(text) : text
}

/** The members of an object in the order of the API. */
const membersOf = (item: Item, reading: Reading): readonly Fact[] =>
  Object.keys(item).map((name) => ({
    name,
    label: labelOf(name),
    value: valueOf(item, name, reading),
  }))

/** What is shown of an object, what is folded away because only programs need it, and what is not set. */
export function factsOf(item: Item, reading: Reading) {
  const every = membersOf(item, reading)
  // The link of an object has its name.
  const linked = new Set(every.flatMap(({ name, value }) => (value.kind === 'named' ? [name] : [])))
  const all = every.filter(
    ({ name }) => !linked.has(name.replace(/_name$/, '_id')) || linked.has(name),
  )
  const isTechnical = ({ value }: Fact) =>
    value.kind === 'id' || (value.kind === 'many' && value.values.some(({ kind }) => kind === 'id'))
  const set = all.filter(({ value }) => value.kind !== 'none')
  const partyIds = all.flatMap(({ name, label }): Fact[] => {
    const party = isItem(item[name]) ? partyIn(item[name]) : null
    return party === null ? [] : [{ name, label, value: { kind: 'id', text: party.id } }]
  })
  return {
    facts: set.filter((fact) => !isTechnical(fact)),
    technical: [...set.filter(isTechnical), ...partyIds],
    unset: all.filter(({ value }) => value.kind === 'none').map(({ label }) => label),
  }
}

const SHOWN_ONCE = /^(?:client_secret|secret|password|token|access_token|initial_access_token)$/

/** The secrets that an answer shows once, and the answer without them. */
export function shownOnce(answer: Item) {
  const isSecret = ([name, value]: [string, unknown]) =>
    SHOWN_ONCE.test(name) && typeof value === 'string'
  const all = Object.entries(answer)
  return {
    shown: all
      .filter(isSecret)
      .map(([name, value]) => ({ name, value: String(value), label: labelOf(name) })),
    rest: Object.fromEntries(all.filter((entry) => !isSecret(entry))),
  }
}

/** A problem document as a page shows it (RFC 9457). */
export type ShownProblem = {
  readonly status: number
  readonly title: string
  readonly detail: string
  readonly requestId: string
  readonly errors: readonly {
    readonly pointer: string
    readonly detail: string
    readonly field: string | null
    readonly label: Label
  }[]
}

export function problemOf(
  { status, json, header }: ApiAnswer,
  fieldAt: (pointer: string) => string | null = () => null,
): ShownProblem {
  const body = isItem(json) ? json : {}
  const errors = Array.isArray(body['errors']) ? body['errors'].filter(isItem) : []
  return {
    status,
    title: String(body['title'] ?? status),
    detail: String(body['detail'] ?? ''),
    requestId: String(body['request_id'] ?? header('x-request-id') ?? ''),
    errors: errors.map(({ pointer, detail }) => {
      const field = fieldAt(String(pointer))
      return {
        pointer: String(pointer),
        detail: String(detail),
        field,
        label: labelOf(field ?? String(pointer)),
      }
    }),
  }
}

/** A curl line for a call, with a placeholder for the token. */
export function curlOf(
  issuer: string,
  {
    method,
    path,
    body,
    file,
  }: { method: string; path: string; body?: Item | null; file?: string | undefined },
): string {
  const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
  const lines = [
    `curl${method === 'GET' ? '' : ` -X ${method}`} ${quoted(`${issuer}${path}`)}`,
    `  -H "Authorization: Bearer $TOKEN"`,
  ]
  if (body !== undefined && body !== null)
    lines.push(`  -H 'Content-Type: application/json'`, `  -d ${quoted(JSON.stringify(body))}`)
  if (file !== undefined)
    lines.push(
      `  -H 'Content-Type: ${file}'`,
      `  --data-binary @${file === 'text/csv' ? 'people' : 'logo'}.${file.split('/')[1]}`,
    )
  return lines.join(' \\\n')
}
