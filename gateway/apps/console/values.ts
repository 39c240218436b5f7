/** How the console shows members of the API: labels, and values by their kind. */
import { isMessage, type MessageKey } from '../../pages/texts/texts.js'
import type { Language } from '../../pages/platform/language.js'
import { type ConsoleResource, isItem, type Item, valueAt } from './declaration.js'
import type { ApiAnswer } from './api.js'

/** A label of the catalogue, or the English words of a member name. */
type Label = { readonly key: MessageKey | null; readonly text: string }

export function labelOf(member: string): Label {
  const name = member.split('.').at(-1)!
  const key = `member.${name}`
  const words = name
    .replaceAll('_', ' ')
    .replace(/\buris?\b|\burl\b|\bid\b/g, (word) =>
      word === 'id' ? word : word.startsWith('uri') ? word.replace('uri', 'URI') : 'URL',
    )
  const text = words.charAt(0).toUpperCase() + words.slice(1)
  return { key: isMessage(key) ? key : null, text }
}

export function labelText(member: string, { say }: Language): string {
  const { key, text } = labelOf(member)
  return key === null ? text : say(key)
}

type Value =
  | { readonly kind: 'none' }
  | { readonly kind: 'time'; readonly iso: string; readonly text: string }
  | { readonly kind: 'flag'; readonly on: boolean }
  | { readonly kind: 'list'; readonly texts: readonly string[] }
  | { readonly kind: 'json' | 'code' | 'status' | 'image' | 'text'; readonly text: string }

const TIME = /^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/
const STATUS = new Set(['status', 'outcome', 'state', 'environment', 'error'])
const CODE = /(?:^|_)(?:id|ids|sub|kid|uri|url|issuer|audience|hash|fingerprint|did|resource)$/

/** The value of a member. An amount is shown with its currency. */
export function valueOf(item: Item, member: string, language: Language): Value {
  const value = valueAt(item, member)
  const name = member.split('.').at(-1)!
  if (value === null || value === undefined || value === '') return { kind: 'none' }
  if (typeof value === 'boolean') return { kind: 'flag', on: value }
  if (Array.isArray(value)) {
    if (value.length === 0) return { kind: 'none' }
    return value.every((one) => typeof one === 'string')
      ? { kind: 'list', texts: value }
      : { kind: 'json', text: JSON.stringify(value, null, 2) }
  }
  if (typeof value === 'object') {
    const isEmpty = Object.keys(value).length === 0
    return isEmpty ? { kind: 'none' } : { kind: 'json', text: JSON.stringify(value, null, 2) }
  }
  const text = String(value)
  const { currency } = item
  if (name.endsWith('_minor') && typeof value === 'number' && typeof currency === 'string')
    return { kind: 'text', text: language.money(value, currency) }
  if (TIME.test(text)) return { kind: 'time', iso: text, text: language.time(new Date(text)) }
  const { media_type: mediaType } = item
  const isImage = name === 'url' && typeof mediaType === 'string' && mediaType.startsWith('image/')
  if (isImage || text.startsWith('data:image/')) return { kind: 'image', text }
  if (STATUS.has(name)) return { kind: 'status', text }
  return { kind: CODE.test(name) ? 'code' : 'text', text }
}

/** The name of an object: the first of its naming members that has a value, otherwise its id. */
export function nameOf(item: Item, { named, id = 'id' }: ConsoleResource): string {
  const found = [...named, id].map((member) => valueAt(item, member)).find((value) => value)
  return found === undefined ? '' : String(found)
}

/** The members of an object in the order of the API. */
export function membersOf(item: Item, language: Language) {
  return Object.keys(item).map((name) => ({
    name,
    label: labelOf(name),
    value: valueOf(item, name, language),
  }))
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
    errors: errors.map(({ pointer, detail }) => ({
      pointer: String(pointer),
      detail: String(detail),
      field: fieldAt(String(pointer)),
    })),
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
    lines.push(`  -H 'Content-Type: ${file}'`, `  --data-binary @logo.${file.split('/')[1]}`)
  return lines.join(' \\\n')
}
