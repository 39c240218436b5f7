/** The pages of the console that read: overview, lists, objects, and checks. */
import type { Language } from '../../pages/platform/language.js'
import { ConsoleActions, type Suggestion, SUGGESTIONS_MAX } from './actions.js'
import type { ApiAnswer } from './api.js'
import { chartsOf, PERIODS } from './charts.js'
import {
  type ConsoleAction,
  type ConsoleResource,
  filled,
  get,
  isItem,
  type Item,
} from './declaration.js'
import { FEATURES } from './features.js'
import { redirect } from './session.js'
import { itemPath, listPath, type Place } from './site.js'
import { asTime, type Field, queryField } from './forms.js'
import {
  factsOf,
  labelOf,
  labelSaid,
  labelText,
  nameOf,
  problemOf,
  type Reading,
  valueOf,
  wordOf,
} from './values.js'
import {
  type Content,
  CURSORS,
  FEATURES_PATH,
  languageOf,
  listCall,
  nextPage,
  type Outcome,
  refusedToken,
  rowsOf,
  type Visit,
} from './visit.js'

const ACTIVITY = get('/api/v1/activity')
const DAY = '24h'
const RECENT = '8'
const DAY_MS = 86_400_000
const EXPIRING_DAYS = 14
const KEYS_MAX = 200
/** How many calls that wait, and connections, the overview looks at. */
const WAITING_MAX = 50
const CONNECTIONS_MAX = 200
/** How many receivers are asked for their last deliveries. */
const HEALTH_MAX = 20
const RECENT_DELIVERIES = 1
const REFUSED = 'auth.login.failure'
/** The resources whose first action the overview offers. */
const FIRST_STEPS = ['applications', 'people', 'webhooks'] as const

export class ConsolePages extends ConsoleActions {
  /** GET /console. */
  async overview(visit: Visit, query: URLSearchParams): Promise<Outcome> {
    const { site } = this.needs
    const { scopes } = visit.session
    const language = languageOf(visit.request)
    const audit = site.named('audit', scopes)
    // A read that says whether the session goes on.
    const read =
      audit ?? site.resources(scopes).find(({ list, asks }) => list && asks === undefined)
    const period = PERIODS.find((one) => one === query.get('period')) ?? DAY
    const day = this.activity(visit, DAY)
    const [answer, attention, activity] = await Promise.all([
      read === undefined
        ? null
        : this.call(visit, { method: 'GET', path: listCall(read, [], { limit: RECENT }) }),
      this.attention(visit, day),
      period === DAY ? day : this.activity(visit, period),
    ])
    if (answer?.status === 401 && refusedToken(answer, null, '/console').tag === 'over')
      return { tag: 'over' }
    const steps = FIRST_STEPS.flatMap((name) => {
      const resource = site.named(name, scopes)
      const action = resource === null ? undefined : site.actions(resource, null, scopes)[0]
      const path = `/console/${name}`
      return action === undefined
        ? []
        : [{ ...linkTo(action, path, false), of: `console.of.${name}` }]
    })
    const on = query.get('live') === '1'
    const recent = { resource: audit!, parent: null, ids: [] }
    return this.page(
      visit,
      'console-overview',
      { title: language.say('console.overview'), place: null, refreshes: on },
      {
        attention,
        steps,
        isEmpty: site.resources(scopes).length === 0,
        charts: chartsOf(activity?.json, language),
        periods: PERIODS.map((one) => ({
          title: `console.activity.${one}`,
          path: `/console?period=${one}${on ? '&live=1' : ''}`,
          here: one === period,
        })),
        live: { on, path: `/console?period=${period}${on ? '' : '&live=1'}` },
        recent:
          audit === null || !Array.isArray(answer?.json)
            ? null
            : this.table(recent, answer.json, {
                language,
                names: await this.namesIn(visit, othersOf(recent.resource, answer.json)),
              }),
      },
    )
  }

  /** GET /console/features: what this deployment has, and how its operator turns on what is off. */
  async features(visit: Visit): Promise<Outcome> {
    const call = { method: 'GET', path: '/api/v1/capabilities' }
    const answer = await this.call(visit, call)
    const on = isItem(answer.json) ? answer.json['capabilities'] : []
    return this.page(
      visit,
      'console-features',
      {
        title: languageOf(visit.request).say('console.features'),
        place: null,
        at: FEATURES_PATH,
        call,
        status: answer.status,
      },
      {
        problem: answer.status === 200 ? null : problemOf(answer),
        features: FEATURES.map((feature) => ({
          ...feature,
          isOn: Array.isArray(on) && on.includes(feature.name),
          docs: this.needs.site.docsOf(feature),
        })),
      },
    )
  }

  /** What an administrator should look at: how many, in which words, and where. Known if every list could be read. */
  private async attention(visit: Visit, day: Promise<ApiAnswer | null>) {
    const { site, clock } = this.needs
    const now = clock.now().getTime()
    let isKnown = true
    const read = async (name: string, more: Readonly<Record<string, string>>) => {
      const resource = site.named(name, visit.session.scopes)
      if (resource === null) return []
      const answer = await this.call(visit, { method: 'GET', path: listCall(resource, [], more) })
      isKnown &&= answer.status === 200
      return this.withHealth(visit, resource, rowsOf(resource, answer.json).filter(isItem))
    }
    const [waiting, connections, receivers, keys, activity] = await Promise.all([
      read('approvals', { status: 'pending', limit: String(WAITING_MAX) }),
      read('connections', { limit: String(CONNECTIONS_MAX) }),
      read('webhooks', { limit: String(HEALTH_MAX) }),
      read('api-keys', { limit: String(KEYS_MAX) }),
      day,
    ])
    const isLost = ({ status }: Item) => status === 'needs_reauthorization'
    isKnown &&= activity === null || activity.status === 200
    const counted = isItem(activity?.json) ? activity.json : {}
    const since = String(counted['from'])
    const refused = rowsOf({ within: 'series' }, counted)
      .filter(isItem)
      .find(({ kind }) => kind === 'sign_ins')?.['failed']
    const soon = new Date(now + EXPIRING_DAYS * DAY_MS).toISOString()
    const isExpiring = ({ status, expires_at: at }: Item) =>
      status === 'active' && String(at) < soon
    const found = [
      ['approvals', waiting.length, '/approvals?status=pending'],
      ['connections', connections.filter(isLost).length, '/connections'],
      ['webhooks', receivers.filter(({ health }) => health === 'failing').length, '/webhooks'],
      ['keys', keys.filter(isExpiring).length, '/api-keys'],
      ['refused', Number(refused ?? 0), `/audit?type=${REFUSED}&since=${since.slice(0, 16)}`],
    ] as const
    const needed = found
      .filter(([, count]) => count > 0)
      .map(([what, count, path]) => ({
        text: languageOf(visit.request).say(`console.attention.${what}`, { count }),
        path: `/console${path}`,
      }))
    return { needed, isKnown }
  }

  /** The figures of a period. Null, if the user may not read them. */
  private async activity(visit: Visit, period: (typeof PERIODS)[number]) {
    if (!this.needs.site.may(ACTIVITY, visit.session.scopes)) return null
    return this.call(visit, { method: 'GET', path: `${ACTIVITY.path}?period=${period}` })
  }

  /** The objects of a list with the health that their last deliveries show. */
  private withHealth(
    visit: Visit,
    { healthy = false, children = [] }: ConsoleResource,
    rows: readonly Item[],
  ): Promise<readonly Item[]> {
    const [deliveries] = children
    if (!healthy || deliveries === undefined) return Promise.resolve(rows)
    return Promise.all(
      rows.slice(0, HEALTH_MAX).map(async (row) => {
        const path = listCall(deliveries, [String(row['id'])], { limit: String(RECENT_DELIVERIES) })
        const last = rowsOf(deliveries, (await this.call(visit, { method: 'GET', path })).json)
        const [first] = last.filter(isItem)
        const isFailing = ({ status }: Item) => status === 'failed' || status === 'retrying'
        const health = first === undefined ? 'idle' : isFailing(first) ? 'failing' : 'healthy'
        return { ...row, health, last_attempt_at: first?.['last_attempt_at'] }
      }),
    ).then((known) => [...known, ...rows.slice(HEALTH_MAX)])
  }

  /** A list, an object, or the page of an action. */
  async show(visit: Visit, place: Place, query: URLSearchParams): Promise<Outcome> {
    const { action } = place
    if (action?.hidden === true) return redirect(listPath(place))
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
    const times = Object.entries(sent).map(([name, text]) => [name, asTime(text)])
    const path = listCall(resource, ids, { ...resource.from, ...Object.fromEntries(times) })
    const isAsked = asks === undefined || sent[asks] !== undefined
    const [answer, begins, suggestions] = await Promise.all([
      isAsked ? this.call(visit, { method: 'GET', path }) : null,
      this.beginning(visit, place, sent),
      this.suggestionsFor(
        visit,
        filters.map((name) => ({ name, columns: [] })),
      ),
    ])
    if (answer?.status === 401) return refusedToken(answer, null, listPath(place))
    const here = listPath(place)
    const on = canRefresh && query.get('live') === '1'
    const later = answer === null ? [] : rowsOf(resource, answer.json).filter(isItem)
    const idOf = (row: Item) => row[resource.id ?? 'id']
    const known = new Set(begins.map(idOf))
    const read = [...begins, ...later.filter((row) => !known.has(idOf(row)))]
    const rows = await this.withHealth(visit, resource, read)
    const failed = answer !== null && answer.status !== 200
    const names = await this.namesIn(visit, [...othersOf(resource, rows), sent])
    const table = this.table(place, failed ? [] : rows, { language, names })
    /** What a filter offers: objects that can be listed, and others that the rows or the filter mention. */
    const offered = (name: string) => {
      const listed = suggestions.get(name) ?? []
      const more = [...new Set([...rows.map((row) => row[name]), sent[name]].map(String))].filter(
        (id) => names.has(id) && !listed.some((one) => one.id === id),
      )
      return [...listed, ...more.map((id) => ({ id, name: names.get(id)!.name }))]
    }
    const actions = site.actions(resource, null, visit.session.scopes)
    const call = { method: 'GET', path }
    const next = failed ? null : nextPage(here, answer, sent)
    const isLater = CURSORS.some((name) => name in sent)
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
      step: actions[0] === undefined ? null : linkTo(actions[0], here, true),
      path: here,
      problem: failed ? problemOf(answer) : null,
      done: query.has('done'),
      actions: actions.map((action, index) => {
        const link = linkTo(action, here, index === 0)
        const query = new URLSearchParams(sent).toString()
        const isFiltered = action.downloads !== undefined && query !== ''
        return isFiltered ? { ...link, path: `${link.path}?${query}` } : link
      }),
      bulk: this.bulkOf(visit, place),
      filters: filters.map((name) =>
        this.filter(resource, name, sent[name] ?? '', language, offered(name)),
      ),
      filtered: filters.some((name) => name !== 'sort' && name in sent),
      total: language.say(next === null && !isLater ? 'console.total' : 'console.total.page', {
        count: table.rows.length,
      }),
      live: canRefresh
        ? { on, path: `${here}?${new URLSearchParams({ ...sent, ...(on ? {} : { live: '1' }) })}` }
        : null,
      next,
      later: isLater,
    })
  }

  /** The objects with which the first page of an unfiltered list begins. */
  private async beginning(
    visit: Visit,
    { resource, ids }: Place,
    sent: Readonly<Record<string, string>>,
  ): Promise<readonly Item[]> {
    const { begins } = resource
    if (begins === undefined || Object.keys(sent).length > 0) return []
    const path = listCall(resource, ids, begins)
    return rowsOf(resource, (await this.call(visit, { method: 'GET', path })).json).filter(isItem)
  }

  /** The actions that a list offers for many of its objects. Null: none. */
  private bulkOf(visit: Visit, place: Place) {
    const { resource } = place
    const { scopes } = visit.session
    const offered = (resource.actions ?? []).filter(
      (action) =>
        action.on === 'item' &&
        resource.bulk?.includes(action.name) &&
        this.needs.site.may(action, scopes),
    )
    if (offered.length === 0) return null
    return {
      path: `${listPath(place)}/do/bulk`,
      csrf: visit.csrf,
      actions: offered.map(({ name, danger }) => ({ name, label: `do.${name}`, danger })),
    }
  }

  /** A filter or the order of a list, with its choices. */
  private filter(
    { list, choices = {} }: ConsoleResource,
    name: string,
    value: string,
    language: Language,
    suggested: readonly Suggestion[],
  ) {
    const route = this.needs.site.routeOf(list!)
    const { kind, options }: Partial<Field> = route === null ? {} : queryField(route, name)
    const said = (word: string) => labelSaid(wordOf(word), language)
    const text = (option: string) => {
      if (name !== 'sort') return said(option)
      const member = labelText(option.replace(/^-/, ''), language)
      return language.say(`console.sort.${option.startsWith('-') ? 'down' : 'up'}`, { member })
    }
    const all = choices[name] ?? options ?? []
    const known = suggested.some(({ id }) => id === value) || value === ''
    // With more objects than a choice has, an id can be typed.
    const named =
      suggested.length === 0 || suggested.length >= SUGGESTIONS_MAX
        ? []
        : [...suggested, ...(known ? [] : [{ id: value, name: value }])]
    return {
      name,
      label: labelOf(name),
      value,
      type: kind === 'time' ? 'datetime-local' : 'text',
      choices: [
        ...all.map((option) => ({ value: option, text: text(option) })),
        ...named.map(({ id, name: text }) => ({ value: id, text })),
      ],
    }
  }

  private table(
    place: Pick<Place, 'resource' | 'parent' | 'ids'>,
    rows: readonly unknown[],
    { language, names }: Required<Reading>,
  ) {
    const { resource } = place
    const { columns, id: idMember = 'id', opens = true } = resource
    return {
      caption: language.say(`console.of.${resource.name}`),
      about: `console.about.${resource.name}`,
      docs: this.needs.site.docsOf(resource),
      step: null,
      bulk: null,
      heads: columns.map(labelOf),
      labels: columns.map((column) => labelText(column, language)),
      rows: rows.filter(isItem).map((item) => ({
        id: String(item[idMember]),
        name: nameOf(item, resource),
        path: opens ? itemPath(place, String(item[idMember])) : null,
        values: columns.map((column) => valueOf(item, column, { language, names })),
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
    const names = await this.namesIn(visit, [othersIn(item, resource.id ?? 'id')])
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
        ...factsOf(item, { language, names }),
        about: `console.about.${resource.name}`,
        docs: site.docsOf(resource),
        actions: site
          .actions(resource, isSingle ? null : item, scopes)
          .map((action, index) => linkTo(action, here, index === 0)),
        children: [
          ...children
            .filter((child) => site.isVisible(child, scopes))
            .map((child) => ({ path: `${here}/${child.name}`, title: `console.of.${child.name}` })),
          ...this.activityOf(visit, place, item),
        ],
        extra: resource.extra ?? null,
        ...(await this.extra(visit, resource, item)),
      },
    )
  }

  /** The link to the audit log of an object: what a person or agent did, or what was done to another object. */
  private activityOf(visit: Visit, { resource, ids }: Place, { sub }: Item) {
    const isEvent = resource.name === 'audit' || resource.single !== undefined
    if (isEvent || this.needs.site.named('audit', visit.session.scopes) === null) return []
    const id = ids.at(-1)!
    const isActor = typeof sub === 'string' || resource.name === 'agents'
    const query = new URLSearchParams(
      isActor ? { actor: typeof sub === 'string' ? sub : id } : { resource_id: id },
    )
    return [{ path: `/console/audit?${query.toString()}`, title: 'console.activity' as const }]
  }

  /** What the templates of single resources need. */
  private async extra(visit: Visit, { name }: ConsoleResource, item: Item): Promise<Content> {
    if (name === 'applications') return { tryPath: tryPath(item) }
    if (name !== 'settings') return {}
    return this.preview(visit, isItem(item['branding']) ? item['branding'] : {})
  }

  /** An action that only reads: the check of the audit chain, and its export. */
  private async direct(
    visit: Visit,
    place: Place,
    action: ConsoleAction,
    query: URLSearchParams,
  ): Promise<Outcome> {
    const route = this.needs.site.routeOf(action)!
    const { filters = [] } = place.resource
    const known = [...query].filter(
      ([name, value]) =>
        value !== '' &&
        (name === 'after_sequence' ||
          (filters.includes(name) && queryField(route, name).kind !== undefined)),
    )
    const { downloads, fixed = {} } = action
    const asked = new URLSearchParams([
      ...known.map(([name, value]): [string, string] => [name, asTime(value)]),
      ...Object.entries(fixed).map(([name, value]): [string, string] => [name, String(value)]),
    ]).toString()
    const path = `${filled(action.path, place.ids)}${asked === '' ? '' : `?${asked}`}`
    const answer = await this.call(visit, { method: 'GET', path })
    if (answer.status === 401) return refusedToken(answer, null, listPath(place))
    if (answer.status !== 200) return this.missing(visit, place, answer)
    if (downloads !== undefined) return fileOf(answer, downloads)
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
        ...factsOf(body, { language }),
        about: null,
        actions: [],
        children: [],
        extra: null,
        onward:
          typeof next === 'number' ? `${listPath(place)}/do/verify?after_sequence=${next}` : null,
        back: listPath(place),
      },
    )
  }
}

/** The file that an operation writes. */
function fileOf(
  { text, stream }: ApiAnswer,
  { type, file }: NonNullable<ConsoleAction['downloads']>,
): Outcome {
  const disposition = `attachment; filename="${file}"`
  if (stream === undefined)
    return {
      form: 'body',
      status: 200,
      contentType: type,
      body: text,
      headers: { 'content-disposition': disposition },
    }
  return {
    form: 'relayed',
    isOwn: true,
    status: 200,
    headers: [
      ['content-type', `${type}; charset=utf-8`],
      ['content-disposition', disposition],
    ],
    body: stream,
    unsent: () => ({ name: 'server-error' }),
  }
}

function linkTo({ name, danger = false }: ConsoleAction, base: string, main: boolean) {
  return { label: `do.${name}`, path: `${base}/do/${name}`, danger, main: main && !danger }
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

const othersOf = ({ id = 'id' }: ConsoleResource, rows: readonly unknown[]) =>
  rows.filter(isItem).map((item) => othersIn(item, id))

/** The members of an object that can name another one. The client id of an application is its own id. */
function othersIn(item: Item, idMember: string): Item {
  return Object.fromEntries(Object.entries(item).filter(([, value]) => value !== item[idMember]))
}
