/** What all pages of the console share: calls of the API, the frame, and objects by their path. */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import { chooseLanguage, type Language } from '../../pages/platform/language.js'
import { type Frame, renderPage } from '../../pages/platform/render.js'
import { pagePolicy } from '../../response/replies.js'
import type { AnyRouteRequest, Rendered } from '../../route.js'
import type { ApiAnswer, ApiCall, ConsoleApi } from './api.js'
import {
  around,
  type ConsoleResource,
  filled,
  get,
  isItem,
  type Item,
  type Operation,
} from './declaration.js'
import type { SignedIn, StepUp } from './session.js'
import { itemPath, listPath, type Place, type Site } from './site.js'
import { CONSOLE_STYLE_PATH } from './style.js'
import { curlOf, mentionedIn, type Named, nameOf, problemOf, wordOf } from './values.js'

const NAMES = get('/api/v1/audit-events/names')
const NAMES_MAX = 200
/** The resource of the console that shows objects of a type. */
const RESOURCE_OF: Readonly<Record<string, string>> = {
  access_policy: 'access-policies',
  agent: 'agents',
  api_key: 'api-keys',
  api_resource: 'api-resources',
  application: 'applications',
  product: 'products',
  sso_provider: 'identity-providers',
  tenant_user: 'people',
  vault_credential: 'vault-credentials',
  webhook: 'webhooks',
}

const REFRESH_SECS = 10
const PAGE_MAX = 200
/** How many pages of a list are searched for an object that no operation reads. */
const SEARCHED_PAGES = 5
export const CURSORS = ['cursor_ts', 'cursor_id', 'cursor_key', 'after', 'after_sequence'] as const

/** The session is over, or needs a fresh second factor for the action. */
type Interrupted =
  | { readonly tag: 'over' }
  | {
      readonly tag: 'step_up'
      readonly stepUp: StepUp
      /** Null for a page that only reads. */
      readonly call: ApiCall | null
      readonly page: string
    }

export type Outcome = Rendered | Interrupted

export const isInterrupted = (outcome: Outcome): outcome is Interrupted => 'tag' in outcome

export type Visit = {
  readonly request: AnyRouteRequest
  readonly session: SignedIn
  /** The `csrf_token` of its forms. */
  readonly csrf: string
}
type Names = ReadonlyMap<string, Named>
export type Content = Readonly<Record<string, unknown>>
/** The page of the features, which is no resource. */
export const FEATURES_PATH = '/console/features'

type Shown = {
  readonly title: string
  readonly place: Place | null
  /** The path of a page without a place. Default: the overview. */
  readonly at?: string | undefined
  /** Name of the object, where the page is below its list. */
  readonly name?: string | undefined
  readonly status?: number | undefined
  readonly call?:
    | { method: string; path: string; body?: Item | null; file?: string | undefined }
    | undefined
  readonly refreshes?: boolean | undefined
}

type ConsolePagesNeeds = {
  readonly api: ConsoleApi
  readonly site: Site
  readonly clock: Clock
  readonly random: Random
  readonly issuer: string
}

export class VisitedPages {
  protected readonly needs: ConsolePagesNeeds

  constructor(needs: ConsolePagesNeeds) {
    this.needs = needs
  }

  /** The page for what does not exist, or not for this user. */
  async missing(visit: Visit, place: Place | null, answer: ApiAnswer | null): Promise<Outcome> {
    if (answer?.status === 401)
      return refusedToken(answer, null, place === null ? '/console' : listPath(place))
    const { say } = languageOf(visit.request)
    const hasProblem = answer !== null && isItem(answer.json)
    return this.page(
      visit,
      'console-gone',
      { title: say('error.title'), place, status: answer?.status ?? 404 },
      { problem: hasProblem ? problemOf(answer) : null },
    )
  }

  /** The object of an action: null above a list, whose own object must exist. */
  protected async target(
    visit: Visit,
    place: Place,
  ): Promise<{ item: Item | null } | { answer: ApiAnswer }> {
    const { resource, parent, ids, isItem: isOfItem } = place
    if (isOfItem || resource.single !== undefined) return this.find(visit, place)
    if (parent === null) return { item: null }
    const path = listCall(resource, ids, this.upTo(resource, 1))
    const answer = await this.call(visit, { method: 'GET', path })
    return answer.status === 200 ? { item: null } : { answer }
  }

  /** The object of a place, or the answer that refused it. */
  protected async find(
    visit: Visit,
    { resource, ids }: Place,
  ): Promise<{ item: Item; path: string } | { answer: ApiAnswer }> {
    const { single, item: one, id: idMember = 'id', timed = false } = resource
    const operation: Operation | undefined = single ?? one
    if (operation !== undefined) {
      const path = filled(operation.path, ids)
      const answer = await this.call(visit, { method: 'GET', path })
      return answer.status === 200 && isItem(answer.json) ? { item: answer.json, path } : { answer }
    }
    const above = ids.slice(0, -1)
    let path = listCall(resource, above, {
      ...resource.from,
      ...(timed ? around(ids.at(-1) ?? '') : {}),
      ...this.upTo(resource, PAGE_MAX),
    })
    let answer = await this.call(visit, { method: 'GET', path })
    for (let searched = 1; ; searched += 1) {
      if (answer.status !== 200) return { answer }
      const wanted = ids.at(-1)
      const item = rowsOf(resource, answer.json)
        .filter(isItem)
        .find((row) => row[idMember] === wanted)
      if (item !== undefined) return { item, path }
      const next = nextCall(answer)
      if (next === null || searched === SEARCHED_PAGES)
        return { answer: { ...answer, status: 404, json: null, text: '' } }
      path = next
      answer = await this.call(visit, { method: 'GET', path })
    }
  }

  /** The query for so many rows, unless the list has no pages. */
  private upTo({ list }: ConsoleResource, limit: number): Readonly<Record<string, string>> {
    const hasPages = this.needs.site.routeOf(list!)?.query !== undefined
    return hasPages ? { limit: String(limit) } : {}
  }

  protected call({ request, session }: Visit, call: ApiCall): Promise<ApiAnswer> {
    return this.needs.api(request, { ...call, token: session.tokens.accessToken })
  }

  /** The names of people and things that these objects mention by id, with their pages. */
  protected async namesIn(visit: Visit, rows: readonly unknown[]): Promise<Names> {
    const { site } = this.needs
    const { scopes } = visit.session
    const ids = [...new Set(rows.filter(isItem).flatMap(mentionedIn))].slice(0, NAMES_MAX)
    if (ids.length === 0 || !site.may(NAMES, scopes)) return new Map()
    const query = new URLSearchParams({ ids: ids.join(',') }).toString()
    const answer = await this.call(visit, { method: 'GET', path: `${NAMES.path}?${query}` })
    const named = Array.isArray(answer.json) ? answer.json.filter(isItem) : []
    return new Map(
      named.map(({ id, type, object_id: objectId, name }) => {
        const resource = site.named(RESOURCE_OF[String(type)], scopes)
        const path = resource && `/console/${resource.name}/${String(objectId)}`
        return [String(id), { name: String(name), path }] as const
      }),
    )
  }

  /** The name of the object above a list. Its id, where the user may not read it. */
  private async nameAbove(visit: Visit, resource: ConsoleResource, id: string): Promise<string> {
    const above = { resource, parent: null, ids: [id], isItem: true, action: null }
    const found = await this.find(visit, above)
    return ('item' in found ? nameOf(found.item, resource) : '') || id
  }

  protected async page(
    visit: Visit,
    template: string,
    shown: Shown,
    content: Content,
  ): Promise<Rendered> {
    const { request, session } = visit
    const { site, issuer } = this.needs
    const { say } = languageOf(request)
    const { place, title, name, call, status = 200, refreshes = false } = shown
    const { at = '/console' } = shown
    const trail: { title: string; path: string }[] = []
    const isBelow = place !== null && (name !== undefined || place.action !== null)
    if (place?.parent != null) {
      const [above = ''] = place.ids
      const up = { resource: place.parent, parent: null, ids: [] }
      trail.push({ title: say(`console.of.${place.parent.name}`), path: listPath(up) })
      const title = await this.nameAbove(visit, place.parent, above)
      trail.push({ title, path: itemPath(up, above) })
    }
    if (isBelow && place !== null)
      trail.push({ title: say(`console.of.${place.resource.name}`), path: listPath(place) })
    const frame: Frame = {
      titleKey: 'console.title',
      title,
      branding: null,
      acceptLanguage: request.browser.languages,
      console: {
        style: CONSOLE_STYLE_PATH,
        tenantName: session.tokens.tenantName,
        person: session.tokens.person,
        csrf: visit.csrf,
        groups: groupsOf(site, session.scopes, place, at),
        trail,
        curl: call === undefined ? null : curlOf(issuer, call),
        refreshSecs: refreshes ? REFRESH_SECS : null,
      },
    }
    const body = renderPage(template, frame, { ...content, wordOf, now: this.needs.clock.now() })
    return {
      form: 'body',
      status,
      contentType: 'text/html; charset=utf-8',
      body,
      policy: pagePolicy([], body.includes('<script ')),
    }
  }
}

export function languageOf({ browser }: AnyRouteRequest): Language {
  return chooseLanguage(null, browser.languages)
}

function groupsOf(site: Site, scopes: readonly string[], place: Place | null, at: string) {
  const resources = site.resources(scopes)
  const here = place?.parent ?? place?.resource
  const groups = [...new Set(resources.map(({ group }) => group))]
  const link = (resource: ConsoleResource) => ({
    title: `console.of.${resource.name}` as const,
    path: `/console/${resource.name}`,
    here: resource === here,
  })
  return [
    {
      title: 'console.title' as const,
      links: (
        [
          ['console.overview', '/console'],
          ['console.features', FEATURES_PATH],
        ] as const
      ).map(([title, path]) => ({ title, path, here: place === null && at === path })),
    },
    ...groups.map((group) => ({
      title: `console.group.${group}` as const,
      links: resources.filter((resource) => resource.group === group).map(link),
    })),
  ]
}

export function listCall(
  { list, query = {} }: ConsoleResource,
  ids: readonly string[],
  more: Readonly<Record<string, string>>,
): string {
  const parameters = new URLSearchParams({ ...more, ...query }).toString()
  const path = filled(list!.path, ids)
  return parameters === '' ? path : `${path}?${parameters}`
}

export function rowsOf(
  { within }: Pick<ConsoleResource, 'within'>,
  json: unknown,
): readonly unknown[] {
  const rows = within === undefined ? json : isItem(json) ? json[within] : undefined
  return Array.isArray(rows) ? rows : []
}

/** The path of the next page of the API, from its Link header (RFC 8288). */
function nextCall(answer: ApiAnswer): string | null {
  const target = /^<([^>]+)>; rel="next"$/.exec(answer.header('link') ?? '')?.[1]
  if (target === undefined || !URL.canParse(target)) return null
  const { pathname, search } = new URL(target)
  return pathname + search
}

export function nextPage(
  here: string,
  answer: ApiAnswer | null,
  sent: Readonly<Record<string, string>>,
): string | null {
  if (answer === null) return null
  const next = nextCall(answer)
  // A list whose answer names where to continue instead of a Link: until a page is empty.
  const { items, next_after: after } = isItem(answer.json) ? answer.json : {}
  const goesOn = Array.isArray(items) && items.length > 0 && typeof after === 'number'
  if (next === null && !goesOn) return null
  const of = new URLSearchParams(next?.slice(next.indexOf('?') + 1) ?? { after: String(after) })
  const cursor = Object.fromEntries(
    CURSORS.flatMap((name) => {
      const value = of.get(name)
      return value === null ? [] : [[name, value] as const]
    }),
  )
  return `${here}?${new URLSearchParams({ ...sent, ...cursor }).toString()}`
}

/** The token was refused: the session is over, or the API asks for a fresh second factor. */
export function refusedToken(answer: ApiAnswer, call: ApiCall | null, page: string): Interrupted {
  const stepUp = stepUpOf(answer)
  return stepUp === null ? { tag: 'over' } : { tag: 'step_up', stepUp, call, page }
}

/** What the API asks for in place of the token, if it asks for a fresh second factor (RFC 9470 section 3). */
function stepUpOf(answer: ApiAnswer): StepUp | null {
  const error = isItem(answer.json) ? answer.json['error'] : null
  if (error !== 'insufficient_user_authentication') return null
  const challenge = answer.header('www-authenticate') ?? ''
  const levels = /acr_values="([^"]*)"/.exec(challenge)?.[1]
  return {
    // The lowest level that is enough, which every account can reach.
    acrValues: levels?.split(' ').at(-1) ?? null,
    maxAgeSecs: /max_age="(\d+)"/.exec(challenge)?.[1] ?? null,
  }
}
