/** The pages of the console. Each reads and acts by calls of the API with the token of the session. */
import type { Random } from '../../runtime/kernel/random.js'
import { chooseLanguage, type Language } from '../pages/platform/language.js'
import { type Frame, renderPage } from '../pages/platform/render.js'
import { BRAND_PATH } from '../pages/platform/style.js'
import { pagePolicy } from '../response/replies.js'
import type { AnyRouteRequest, FormFields, Rendered } from '../route.js'
import type { ApiAnswer, ApiCall, ConsoleApi } from './api.js'
import {
  type ConsoleAction,
  type ConsoleResource,
  filled,
  isItem,
  type Item,
  type Operation,
} from './declaration.js'
import {
  bodyOf,
  exampleOf,
  type Field,
  fieldAt,
  formOf,
  shownIn,
  typedIn,
  withoutSecrets,
} from './forms.js'
import { redirect, type SignedIn, type StepUp } from './session.js'
import { itemPath, listPath, type Place, type Site } from './site.js'
import { CONSOLE_STYLE_PATH } from './style.js'
import {
  curlOf,
  labelOf,
  labelText,
  membersOf,
  nameOf,
  problemOf,
  shownOnce,
  type ShownProblem,
  valueOf,
} from './values.js'

const REFRESH_SECS = 10
const COUNT_MAX = 50
const RECENT = 8
const PAGE_MAX = 200
/** How many pages of a list are searched for an object that has no operation of its own. */
const SEARCHED_PAGES = 5
const CURSORS = ['cursor_ts', 'cursor_id', 'after', 'after_sequence'] as const

/** The session is over, or needs a fresh second factor for the action. */
export type Interrupted =
  | { readonly tag: 'over' }
  | {
      readonly tag: 'step_up'
      readonly stepUp: StepUp
      readonly call: ApiCall
      readonly page: string
    }

export type Outcome = Rendered | Interrupted

export const isInterrupted = (outcome: Outcome): outcome is Interrupted => 'tag' in outcome

type Visit = { readonly request: AnyRouteRequest; readonly session: SignedIn }
type Content = Readonly<Record<string, unknown>>
type Shown = {
  readonly title: string
  readonly place: Place | null
  readonly name?: string | undefined
  readonly status?: number | undefined
  readonly call?: { method: string; path: string; body?: Item | null } | undefined
  readonly refreshes?: boolean | undefined
}

export type ConsolePagesNeeds = {
  readonly api: ConsoleApi
  readonly site: Site
  readonly random: Random
  readonly issuer: string
}

export class ConsolePages {
  private readonly needs: ConsolePagesNeeds

  constructor(needs: ConsolePagesNeeds) {
    this.needs = needs
  }

  /** GET /console. */
  async overview(visit: Visit, query: URLSearchParams): Promise<Outcome> {
    const { site } = this.needs
    const language = languageOf(visit.request)
    const resources = site.resources(visit.session.scopes)
    const counted = resources.filter(
      ({ list, query: fixed, asks, within }) =>
        list !== undefined && fixed === undefined && asks === undefined && within === undefined,
    )
    const audit = resources.find(({ name }) => name === 'audit')
    const own = counted.filter(({ name }) => name !== 'audit')
    const [events, ...answers] = await Promise.all([
      audit === undefined
        ? null
        : this.call(visit, { method: 'GET', path: listCall(audit, [], { limit: String(RECENT) }) }),
      ...own.map((resource) =>
        this.call(visit, {
          method: 'GET',
          path: listCall(resource, [], { limit: String(COUNT_MAX) }),
        }),
      ),
    ])
    if ([events, ...answers].some((answer) => answer?.status === 401)) return { tag: 'over' }
    const figures = own.flatMap((resource, index) => {
      const rows = answers[index]?.json
      if (answers[index]?.status !== 200 || !Array.isArray(rows)) return []
      const more = answers[index]?.header('link') !== undefined
      return [
        {
          path: `/console/${resource.name}`,
          title: `console.of.${resource.name}`,
          count: `${rows.length}${more ? '+' : ''}`,
        },
      ]
    })
    const on = query.get('live') === '1'
    return this.page(
      visit,
      'console-overview',
      { title: language.say('console.overview'), place: null, refreshes: on },
      {
        figures,
        live: { on, path: on ? '/console' : '/console?live=1' },
        recent:
          audit === undefined || !Array.isArray(events?.json)
            ? null
            : this.table({ resource: audit, parent: null, ids: [] }, events.json, language),
      },
    )
  }

  /** A list, an object, or the page of an action. */
  async show(visit: Visit, place: Place, query: URLSearchParams): Promise<Outcome> {
    const { action } = place
    if (action !== null && action.method === 'GET' && action.danger !== true)
      return this.direct(visit, place, action, query)
    if (action !== null) return this.form(visit, place, action)
    if (place.resource.single !== undefined || place.isItem)
      return this.item(visit, place, query.has('done'))
    return this.list(visit, place, query)
  }

  private async list(visit: Visit, place: Place, query: URLSearchParams): Promise<Outcome> {
    const { site } = this.needs
    const { resource, ids } = place
    const { filters = [], asks, live: canRefresh = false } = resource
    const language = languageOf(visit.request)
    const sent = Object.fromEntries(
      [...filters, ...CURSORS].flatMap((name) => {
        const value = query.get(name)
        return value === null || value === '' ? [] : [[name, value] as const]
      }),
    )
    const path = listCall(resource, ids, { ...resource.from, ...sent })
    const isAsked = asks === undefined || sent[asks] !== undefined
    const answer = isAsked ? await this.call(visit, { method: 'GET', path }) : null
    if (answer?.status === 401) return { tag: 'over' }
    const here = listPath(place)
    const on = canRefresh && query.get('live') === '1'
    const rows = answer === null ? [] : rowsOf(resource, answer.json)
    const failed = answer !== null && answer.status !== 200
    const table = this.table(place, failed ? [] : rows, language)
    const actions = site.actions(resource, null, visit.session.scopes)
    const call = { method: 'GET', path }
    const shown = {
      title: language.say(`console.of.${resource.name}`),
      place,
      refreshes: on,
      call,
      ...(failed ? { status: answer.status } : {}),
    }
    return this.page(visit, 'console-list', shown, {
      ...table,
      asks: !isAsked,
      path: here,
      problem: failed ? problemOf(answer) : null,
      done: query.has('done'),
      actions: actions.map((action, index) => linkTo(action, here, index === 0)),
      filters: filters.map((name) => ({ name, label: labelOf(name), value: sent[name] ?? '' })),
      live: canRefresh ? { on, path: on ? here : `${here}?live=1` } : null,
      next: failed ? null : nextPage(here, answer, sent),
      later: CURSORS.some((name) => name in sent),
    })
  }

  private table(
    place: Pick<Place, 'resource' | 'parent' | 'ids'>,
    rows: readonly unknown[],
    language: Language,
  ) {
    const { resource } = place
    const { columns, id: idMember = 'id', opens = true } = resource
    return {
      heads: columns.map(labelOf),
      labels: columns.map((column) => labelText(column, language)),
      rows: rows.filter(isItem).map((item) => ({
        name: nameOf(item, resource),
        path: opens ? itemPath(place, String(item[idMember])) : null,
        values: columns.map((column) => valueOf(item, column, language)),
      })),
    }
  }

  private async item(visit: Visit, place: Place, done: boolean): Promise<Outcome> {
    const { site } = this.needs
    const { resource, ids } = place
    const language = languageOf(visit.request)
    const found = await this.find(visit, place)
    if ('answer' in found) return this.missing(visit, place, found.answer)
    const { item, path } = found
    const isSingle = resource.single !== undefined
    const here = isSingle ? listPath(place) : itemPath(place, ids.at(-1)!)
    const { scopes } = visit.session
    const children = isSingle ? [] : (resource.children ?? [])
    const name = isSingle ? language.say(`console.of.${resource.name}`) : nameOf(item, resource)
    return this.page(
      visit,
      'console-item',
      { title: name, place, name, call: { method: 'GET', path } },
      {
        problem: null,
        done,
        shown: [],
        back: null,
        onward: null,
        members: membersOf(item, language),
        actions: site
          .actions(resource, isSingle ? null : item, scopes)
          .map((action, index) => linkTo(action, here, index === 0)),
        children: children
          .filter((child) => site.isVisible(child, scopes))
          .map((child) => ({ path: `${here}/${child.name}`, title: `console.of.${child.name}` })),
        extra: resource.extra ?? null,
        ...this.extra(resource, item, visit.session),
      },
    )
  }

  /** What the templates of single resources need. */
  private extra({ name }: ConsoleResource, item: Item, session: SignedIn): Content {
    if (name === 'applications') return { tryPath: tryPath(item) }
    if (name !== 'settings') return {}
    const branding = isItem(item['branding']) ? item['branding'] : {}
    const { name: shownName, color, logo } = branding
    const isColor = typeof color === 'string' && /^#[0-9a-f]{6}$/.test(color)
    return {
      preview: {
        name: shownName ?? session.tokens.tenantName,
        logo: typeof logo === 'string' && logo.startsWith('data:image/') ? logo : null,
        brand: isColor ? `${BRAND_PATH}/${color.slice(1)}` : null,
      },
    }
  }

  private async form(
    visit: Visit,
    place: Place,
    action: ConsoleAction,
    again?: {
      typed: Readonly<Record<string, string>>
      problem: ShownProblem | null
      malformed?: string
    },
  ): Promise<Outcome> {
    const { site, random } = this.needs
    const { resource, ids } = place
    const { say } = languageOf(visit.request)
    const route = site.routeOf(action)!
    const fields = fieldsOf(site, action)
    const found = await this.target(visit, place)
    if ('answer' in found) return this.missing(visit, place, found.answer)
    const { item } = found
    const values =
      again?.typed ??
      Object.fromEntries(
        fields.map((field) => [
          field.name,
          action.fills === true && item !== null ? shownIn(field, valueIn(item, field.name)) : '',
        ]),
      )
    const shown = fields.map((field) => ({
      ...field,
      label: labelOf(field.name),
      options: field.kind === 'boolean' ? ['true', 'false'] : field.options,
      value: field.kind === 'secret' ? '' : (values[field.name] ?? ''),
      rows: Math.min(12, Math.max(3, (values[field.name] ?? '').split('\n').length + 1)),
      hint: field.kind === 'lines' || field.kind === 'json' || field.description !== undefined,
      fault:
        again?.malformed === field.name
          ? 'malformed'
          : again?.problem?.errors.find((fault) => fault.field === field.name)?.detail,
    }))
    const { first } = action
    const isFirst = ({ name, required }: Field) =>
      first === undefined || first.includes(name) || required
    const order = (name: string) => first?.indexOf(name) ?? 0
    const back = item !== null && place.isItem ? itemPath(place, ids.at(-1)!) : listPath(place)
    const label = `do.${action.name}` as const
    const name =
      item === null || !place.isItem ? say(`console.of.${resource.name}`) : nameOf(item, resource)
    const more = shown.filter((field) => !isFirst(field))
    const example = action.method === 'GET' || fields.length === 0 ? null : exampleOf(fields)
    return this.page(
      visit,
      'console-form',
      {
        title: `${say(label)}: ${name}`,
        place,
        name,
        call: { method: action.method, path: filled(action.path, ids), body: example },
        status: again === undefined ? 200 : (again.problem?.status ?? 400),
      },
      {
        problem: again?.problem ?? null,
        path: `${back}/do/${action.name}`,
        back,
        label,
        danger: action.danger === true,
        summary: route.summary.replace(/\.$/, ''),
        about: route.description ?? null,
        csrf: visit.request.browser.csrfToken,
        idempotencyKey: random.uuid(),
        first: shown.filter(isFirst).toSorted((a, b) => order(a.name) - order(b.name)),
        more,
        open: more.some(({ fault }) => fault !== undefined),
      },
    )
  }

  /** The form of an action was sent: calls the API. */
  async act(visit: Visit, place: Place, sent: FormFields): Promise<Outcome> {
    const { site } = this.needs
    const action = place.action!
    const { ids } = place
    const fields = fieldsOf(site, action)
    const typed = typedIn(fields, sent)
    // What does not exist for the user is not found, whatever the form says.
    const found = await this.target(visit, place)
    if ('answer' in found) return this.missing(visit, place, found.answer)
    const before = action.method === 'PATCH' && action.fills === true ? found.item : null
    const meant = bodyOf(fields, typed, before)
    if ('field' in meant)
      return this.form(visit, place, action, { typed, problem: null, malformed: meant.field })
    const hasBody = site.routeOf(action)?.body !== undefined
    const key = new Map(sent).get('idempotency_key') ?? ''
    const base = place.isItem ? itemPath(place, ids.at(-1)!) : listPath(place)
    return this.perform(
      visit,
      place,
      {
        method: action.method,
        path: filled(action.path, ids),
        body: hasBody ? JSON.stringify(meant.body) : null,
        ...(site.routeOf(action)?.idempotent === true && /^[0-9a-f-]{36}$/.test(key)
          ? { idempotencyKey: key }
          : {}),
      },
      { page: `${base}/do/${action.name}`, typed },
    )
  }

  /** Calls the API for an action that the user confirmed, and shows what came of it. */
  async perform(
    visit: Visit,
    place: Place,
    call: ApiCall,
    { page, typed = {} }: { page: string; typed?: Readonly<Record<string, string>> },
  ): Promise<Outcome> {
    const action = place.action!
    const answer = await this.call(visit, call)
    if (answer.status === 401) {
      const stepUp = stepUpOf(answer)
      return stepUp === null ? { tag: 'over' } : { tag: 'step_up', stepUp, call, page }
    }
    if (answer.status >= 400) {
      const fields = fieldsOf(this.needs.site, action)
      const problem = problemOf(answer, (pointer) => fieldAt(fields, pointer))
      return this.form(visit, place, action, { typed, problem })
    }
    const body = isItem(answer.json) ? answer.json : {}
    const { shown, rest } = shownOnce(body)
    if (shown.length > 0 || action.shows === true)
      return this.result(visit, place, call, shown, rest)
    return redirect(`${this.after(place, body)}?done=1`)
  }

  /** Where the user goes after an action. */
  private after(place: Place, made: Item): string {
    const { resource, ids, action } = place
    const { id: idMember = 'id', opens = true } = resource
    const isGone = action?.method === 'DELETE'
    if (place.isItem && !isGone && opens) return itemPath(place, ids.at(-1)!)
    const id = made[idMember]
    return !place.isItem && opens && typeof id === 'string' && resource.single === undefined
      ? itemPath(place, id)
      : listPath(place)
  }

  private result(
    visit: Visit,
    place: Place,
    call: ApiCall,
    shown: ReturnType<typeof shownOnce>['shown'],
    rest: Item,
  ): Outcome {
    const language = languageOf(visit.request)
    const { method, path, body } = call
    const sent: unknown = body == null ? null : JSON.parse(body)
    const title = language.say(`do.${place.action!.name}`)
    return this.page(
      visit,
      'console-item',
      {
        title,
        place,
        name: title,
        call: { method, path, body: isItem(sent) ? withoutSecrets(sent) : null },
      },
      {
        problem: null,
        done: true,
        shown,
        members: membersOf(rest, language),
        actions: [],
        children: [],
        extra: null,
        onward: null,
        back: this.after(place, rest),
      },
    )
  }

  /** An action that only reads: the check of the audit chain, and its export. */
  private async direct(
    visit: Visit,
    place: Place,
    action: ConsoleAction,
    query: URLSearchParams,
  ): Promise<Outcome> {
    const after = query.get('after_sequence')
    const path = `${filled(action.path, place.ids)}${after === null ? '' : `?after_sequence=${encodeURIComponent(after)}`}`
    const answer = await this.call(visit, { method: 'GET', path })
    if (answer.status === 401) return { tag: 'over' }
    if (answer.status !== 200) return this.missing(visit, place, answer)
    if (action.name === 'export')
      return {
        form: 'body',
        status: 200,
        contentType: 'application/x-ndjson',
        body: answer.text,
        headers: { 'content-disposition': 'attachment; filename="audit-events.ndjson"' },
      }
    const language = languageOf(visit.request)
    const body = isItem(answer.json) ? answer.json : {}
    const next = body['next_after_sequence']
    const broken = isItem(body['broken_at']) ? body['broken_at']['sequence'] : null
    const title =
      body['valid'] === true
        ? language.say('console.chain.valid', { count: Number(body['events']) })
        : language.say('console.chain.broken', { count: Number(broken) })
    return this.page(
      visit,
      'console-item',
      { title, place, name: title, call: { method: 'GET', path } },
      {
        problem: null,
        done: false,
        shown: [],
        members: membersOf(body, language),
        actions: [],
        children: [],
        extra: null,
        onward:
          typeof next === 'number' ? `${listPath(place)}/do/verify?after_sequence=${next}` : null,
        back: listPath(place),
      },
    )
  }

  /** The object of an action: null above a list, whose own object must exist. */
  private async target(
    visit: Visit,
    place: Place,
  ): Promise<{ item: Item | null } | { answer: ApiAnswer }> {
    const { resource, parent, ids, isItem: isOfItem } = place
    if (isOfItem || resource.single !== undefined) return this.find(visit, place)
    if (parent === null) return { item: null }
    const path = listCall(resource, ids, resource.within === undefined ? { limit: '1' } : {})
    const answer = await this.call(visit, { method: 'GET', path })
    return answer.status === 200 ? { item: null } : { answer }
  }

  /** The object of a place, or the answer that refused it. */
  private async find(
    visit: Visit,
    { resource, ids }: Place,
  ): Promise<{ item: Item; path: string } | { answer: ApiAnswer }> {
    const { single, item: one, id: idMember = 'id' } = resource
    const operation: Operation | undefined = single ?? one
    if (operation !== undefined) {
      const path = filled(operation.path, ids)
      const answer = await this.call(visit, { method: 'GET', path })
      return answer.status === 200 && isItem(answer.json) ? { item: answer.json, path } : { answer }
    }
    const above = ids.slice(0, -1)
    let path = listCall(resource, above, {
      ...resource.from,
      ...(resource.within === 'keys' ? {} : { limit: String(PAGE_MAX) }),
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

  /** The page for what does not exist, or not for this user. */
  missing(visit: Visit, place: Place | null, answer: ApiAnswer | null): Outcome {
    if (answer?.status === 401) return { tag: 'over' }
    const { say } = languageOf(visit.request)
    const hasProblem = answer !== null && isItem(answer.json)
    return this.page(
      visit,
      'console-gone',
      { title: say('error.title'), place, status: answer?.status ?? 404 },
      { problem: hasProblem ? problemOf(answer) : null },
    )
  }

  private call({ request, session }: Visit, call: ApiCall): Promise<ApiAnswer> {
    return this.needs.api(request, { ...call, token: session.tokens.accessToken })
  }

  private page(
    { request, session }: Visit,
    template: string,
    shown: Shown,
    content: Content,
  ): Rendered {
    const { site, issuer } = this.needs
    const { say } = languageOf(request)
    const { place, title, name, call, status = 200, refreshes = false } = shown
    const trail: { title: string; path: string }[] = []
    const isBelow = place !== null && (name !== undefined || place.action !== null)
    if (place?.parent != null) {
      const [above = ''] = place.ids
      const up = { resource: place.parent, parent: null, ids: [] }
      trail.push({ title: say(`console.of.${place.parent.name}`), path: listPath(up) })
      trail.push({ title: say('console.details'), path: itemPath(up, above) })
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
        csrf: request.browser.csrfToken,
        groups: groupsOf(site, session.scopes, place),
        trail,
        curl: call === undefined ? null : curlOf(issuer, call),
        refreshSecs: refreshes ? REFRESH_SECS : null,
      },
    }
    return {
      form: 'body',
      status,
      contentType: 'text/html; charset=utf-8',
      body: renderPage(template, frame, content),
      policy: pagePolicy([]),
    }
  }
}

function languageOf({ browser }: AnyRouteRequest): Language {
  return chooseLanguage(null, browser.languages)
}

function fieldsOf(site: Site, action: ConsoleAction): readonly Field[] {
  const { without = [] } = action
  return formOf(site.routeOf(action)!).filter(({ name }) => !without.includes(name))
}

function valueIn(item: Item, name: string): unknown {
  const [group = '', member] = name.split('.')
  const holder = item[group]
  if (member === undefined) return holder
  return isItem(holder) ? holder[member] : undefined
}

function groupsOf(site: Site, scopes: readonly string[], place: Place | null) {
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
      links: [{ title: 'console.overview' as const, path: '/console', here: place === null }],
    },
    ...groups.map((group) => ({
      title: `console.group.${group}` as const,
      links: resources.filter((resource) => resource.group === group).map(link),
    })),
  ]
}

function linkTo({ name, danger = false }: ConsoleAction, base: string, main: boolean) {
  return { label: `do.${name}`, path: `${base}/do/${name}`, danger, main: main && !danger }
}

function listCall(
  { list, query = {} }: ConsoleResource,
  ids: readonly string[],
  more: Readonly<Record<string, string>>,
): string {
  const parameters = new URLSearchParams({ ...more, ...query }).toString()
  const path = filled(list!.path, ids)
  return parameters === '' ? path : `${path}?${parameters}`
}

function rowsOf({ within }: ConsoleResource, json: unknown): readonly unknown[] {
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

function nextPage(
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

/**
 * A link that begins the sign-in of an application as the application would. Its code_challenge has no verifier, so
 * that the code cannot be redeemed.
 */
function tryPath(item: Item): string | null {
  const { client_id, redirect_uris, grant_types, status, scopes } = item
  const uris = Array.isArray(redirect_uris) ? redirect_uris : []
  const grants = Array.isArray(grant_types) ? grant_types : []
  if (uris.length === 0 || !grants.includes('authorization_code') || status !== 'active')
    return null
  const scope = Array.isArray(scopes) && scopes.includes('openid') ? 'openid' : String(scopes)
  const parameters = new URLSearchParams({
    client_id: String(client_id),
    response_type: 'code',
    redirect_uri: String(uris[0]),
    scope,
    state: 'console',
    code_challenge: 'A'.repeat(43),
    code_challenge_method: 'S256',
  })
  return `/oauth/authorize?${parameters.toString()}`
}
