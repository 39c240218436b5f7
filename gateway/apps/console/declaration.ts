/**
 * What the console shows, as declarations: resources with their API operations. The pages, the forms and the curl
 * lines follow from these and from the declarations of the routes.
 */
import type { z } from 'zod'
import type { MessageKey } from '../../pages/texts/texts.js'
import type { Method } from '../../route.js'

/** A JSON object of the API. */
export type Item = Readonly<Record<string, unknown>>

/** An operation of the API, by the method and path of its route. */
export type Operation = { readonly method: Method; readonly path: string }

type Schemas = Readonly<Record<string, z.ZodType>>

export type ConsoleAction = Operation & {
  /** The last segment of its page. Its label is `do.<name>`. */
  readonly name: ActionName
  /** `list`: above a list, such as a creation. */
  readonly on: 'list' | 'item'
  /** Members of the body that the form shows first. The others are folded. Absent: all. */
  readonly first?: readonly string[] | undefined
  /** Members of the body that the form does not offer. */
  readonly without?: readonly string[] | undefined
  /** Members of the body, or of the query of a file, that the action sets. */
  readonly fixed?: Item | undefined
  /** Schemas of members in place of the schemas of the body: of a document, the form has its members. */
  readonly schemas?: Schemas | ((item: Item | null) => Schemas) | undefined
  /** Known values of a list, from which the form lets people choose. Others can be typed. */
  readonly offers?: Readonly<Record<string, readonly string[]>> | undefined
  /** The form starts with the values of the object. */
  readonly fills?: boolean | undefined
  /** Its form has a button that shows the branding with the typed values and saves nothing. */
  readonly previews?: boolean | undefined
  /** It ends or deletes something. */
  readonly danger?: boolean | undefined
  /** Whether the action applies to the object. Default: always. */
  readonly when?: ((item: Item) => boolean) | undefined
  /** The body is a file of one of these media types. */
  readonly upload?: readonly string[] | undefined
  /** No link leads to it: a page sends its form. */
  readonly hidden?: boolean | undefined
  /** The answer is a file. A filtered list has a link to the file of what it shows. */
  readonly downloads?: { readonly type: string; readonly file: string } | undefined
  /** The answer is a separate page, as a result of a check. */
  readonly shows?: boolean | undefined
}

type ActionName = keyof {
  [Key in MessageKey as Key extends `do.${infer Name}` ? Name : never]: true
}

type Group = keyof {
  [Key in MessageKey as Key extends `console.group.${infer Name}` ? Name : never]: true
}

type ResourceName = keyof {
  [Key in MessageKey as Key extends `console.of.${infer Name}` ? Name : never]: true
}

export type ConsoleResource = {
  /** A segment of its path. Its title is `console.of.<name>`. */
  readonly name: ResourceName
  readonly group: Group
  /** Its page of the documentation, such as `guides/webhooks/webhooks`. */
  readonly docs?: string | undefined
  /** The list: an array, or an object whose member `within` is one. */
  readonly list?: Operation | undefined
  /** Query of the list that is always sent. */
  readonly query?: Readonly<Record<string, string>> | undefined
  /** Query of the first page. */
  readonly from?: Readonly<Record<string, string>> | undefined
  /** The first page begins with the objects of this query. */
  readonly begins?: Readonly<Record<string, string>> | undefined
  readonly within?: string | undefined
  /** Reads one object. Without it, an object of the list is shown. */
  readonly item?: Operation | undefined
  /** The resource is one object without an id. */
  readonly single?: Operation | undefined
  /** The member that identifies an object. Default: id. */
  readonly id?: string | undefined
  /** The members that name an object, the first that has a value. */
  readonly named: readonly string[]
  /** Members in the list, as paths such as `resource.type`. */
  readonly columns: readonly string[]
  /** Query members by which the list is filtered and sorted. Their choices come from the schema. */
  readonly filters?: readonly string[] | undefined
  /** Choices of filters whose schema allows more. */
  readonly choices?: Readonly<Record<string, readonly string[]>> | undefined
  /** A filter without which the API lists nothing. */
  readonly asks?: string | undefined
  readonly actions?: readonly ConsoleAction[] | undefined
  /** Actions on objects that can be done for many at a time. */
  readonly bulk?: readonly ActionName[] | undefined
  readonly children?: readonly ConsoleResource[] | undefined
  /** Each object has a page. Default: true. */
  readonly opens?: boolean | undefined
  /** A template with the name of the resource, shown above the list or the object. */
  readonly extra?: string | undefined
  /** Whether the overview shows how many there are. Default: true. */
  readonly counted?: boolean | undefined
  /** The list has the health of each object: whether its last deliveries succeeded. */
  readonly healthy?: boolean | undefined
  /** The ids have a time (UUIDv7): an object is looked for among objects from around that time. */
  readonly timed?: boolean | undefined
  /** The page may reload itself every ten seconds. */
  readonly live?: boolean | undefined
  /** The capability without which the API answers that the feature is off. */
  readonly feature?: string | undefined
  /** For deployment operators: shown only to tokens with one of these scopes. */
  readonly needs?: readonly string[] | undefined
}

const WINDOW_MS = 60_000

/** The time around the time in an id (RFC 9562 section 5.7). */
export function around(id: string): Readonly<Record<string, string>> {
  const ms = Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)
  if (!(ms > WINDOW_MS && ms < 8e15)) return {}
  const at = (offset: number) => new Date(ms + offset).toISOString()
  return { since: at(-WINDOW_MS), until: at(WINDOW_MS) }
}

export const get = (path: string): Operation => ({ method: 'GET', path })

/** Fills the parameters of a path with the last of the ids: an object of a list within an object needs both or one. */
export function filled(path: string, ids: readonly string[]): string {
  const count = [...path.matchAll(/\{[a-z_]+\}/g)].length
  const own = ids.slice(ids.length - count)
  let at = 0
  return path.replaceAll(/\{[a-z_]+\}/g, () => encodeURIComponent(own[at++] ?? ''))
}

/** The value at a path such as `resource.type`. */
export function valueAt(item: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((at, name) => (isItem(at) ? at[name] : undefined), item)
}

export function isItem(value: unknown): value is Item {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
