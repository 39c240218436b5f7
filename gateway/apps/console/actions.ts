/** Actions of the console: the form of an API operation, its call, and what came of it. */
import type { FormFields, UploadedForm } from '../../route.js'
import type { ApiCall } from './api.js'
import { BRAND_PATH } from '../../pages/platform/style.js'
import { type ConsoleAction, filled, get, isItem, type Item, valueAt } from './declaration.js'
import {
  bodyOf,
  exampleOf,
  type Field,
  fieldAt,
  formOf,
  inputsOf,
  isHidden,
  memberFields,
  rowsTyped,
  type Typed,
  typedIn,
  withoutSecrets,
} from './forms.js'
import { redirect } from './session.js'
import { itemPath, listPath, type Place, type Site } from './site.js'
import {
  type Content,
  languageOf,
  listCall,
  type Outcome,
  refusedToken,
  rowsOf,
  type Visit,
  VisitedPages,
} from './visit.js'
import {
  eventWords,
  factsOf,
  labelOf,
  nameOf,
  problemOf,
  shownOnce,
  type ShownProblem,
} from './values.js'

const LOGO = get('/api/v1/tenant/branding/assets/{kind}')
/** The resource whose objects a member names. */
const REFERENCES: Readonly<Record<string, string>> = {
  agent_id: 'agents',
  credential_id: 'vault-credentials',
  delegation_id: 'delegations',
  grantee_id: 'agents',
  organization_id: 'organizations',
  price_id: 'prices',
  product_id: 'products',
  recipient_id: 'agents',
  sso_provider_id: 'identity-providers',
  token_of: 'vault-credentials',
  user_id: 'people',
}
/** Objects to choose from. */
export const SUGGESTIONS_MAX = 100
export type Suggestion = { readonly id: string; readonly name: string }
type Suggestions = ReadonlyMap<string, readonly Suggestion[]>

/** The field of a file. */
const FILE = 'file'

export class ConsoleActions extends VisitedPages {
  protected async form(
    visit: Visit,
    place: Place,
    action: ConsoleAction,
    again?: {
      typed: Typed
      problem: ShownProblem | null
      malformed?: string
      /** Shows all fields. */
      isOpen?: boolean
      /** What the values would look like. Nothing was saved. */
      preview?: Content
    },
  ): Promise<Outcome> {
    const { site, random } = this.needs
    const { resource, ids } = place
    const { say } = languageOf(visit.request)
    const route = site.routeOf(action)!
    const found = await this.target(visit, place)
    if ('answer' in found) return this.missing(visit, place, found.answer)
    const { item } = found
    const fields = fieldsOf(site, action, item)
    const values: Typed =
      again?.typed ??
      Object.assign(
        {},
        ...fields
          .filter((field) => action.fills === true && !isHidden(field))
          .map((field) => inputsOf(field, valueAt(item, field.name))),
      )
    const suggestions = await this.suggestionsFor(visit, fields)
    const faultOf = (name: string) =>
      again?.malformed === name
        ? 'malformed'
        : again?.problem?.errors.find(({ field }) => field === name)?.detail
    const shown = fields.map((field) =>
      offering(shownField(field, values, suggestions, faultOf), action.offers?.[field.name] ?? []),
    )
    const { first } = action
    const isFirst = ({ name, required }: Field) =>
      first === undefined || first.includes(name) || required
    const order = (name: string) => first?.indexOf(name) ?? 0
    const back = item !== null && place.isItem ? itemPath(place, ids.at(-1)!) : listPath(place)
    const label = `do.${action.name}` as const
    const name =
      item === null || !place.isItem ? say(`console.of.${resource.name}`) : nameOf(item, resource)
    const more = shown.filter((field) => !isFirst(field))
    const example =
      action.method === 'GET' || fields.length === 0
        ? null
        : { ...action.fixed, ...exampleOf(fields) }
    return this.page(
      visit,
      'console-form',
      {
        title: `${say(label)}: ${name}`,
        place,
        name,
        call: {
          method: action.method,
          path: filled(action.path, ids),
          body: example,
          file: action.upload?.[0],
        },
        status: again?.problem?.status ?? (again?.malformed === undefined ? 200 : 400),
      },
      {
        problem: again?.problem ?? null,
        path: `${back}/do/${action.name}`,
        back,
        // The button of the form saves; the link to the form says "Edit".
        label: action.name === 'change' ? 'profile.save' : label,
        danger: action.danger === true,
        summary: route.summary.replace(/\.$/, ''),
        about: route.description ?? null,
        csrf: visit.csrf,
        idempotencyKey: random.uuid(),
        first: shown.filter(isFirst).toSorted((a, b) => order(a.name) - order(b.name)),
        more,
        open: again?.isOpen === true || more.some(({ hasFault }) => hasFault),
        upload: action.upload ?? null,
        fileMissing: again?.malformed === FILE,
        previews: action.previews === true,
        preview: null,
        ...again?.preview,
      },
    )
  }

  /** The objects that a field may name, by the member. Their names are shown. */
  protected async suggestionsFor(
    visit: Visit,
    fields: readonly Pick<Field, 'name' | 'columns'>[],
  ): Promise<Suggestions> {
    const all = fields.flatMap((field) => [field, ...field.columns])
    const found = all.map(async ({ name }): Promise<readonly [string, readonly Suggestion[]]> => {
      const member = name.split('.').at(-1)!
      const resource = this.needs.site.named(REFERENCES[member], visit.session.scopes)
      if (resource === null) return [member, []]
      const path = listCall(resource, [], { limit: String(SUGGESTIONS_MAX) })
      const answer = await this.call(visit, { method: 'GET', path })
      const rows = rowsOf(resource, answer.json).filter(isItem)
      const { id = 'id' } = resource
      return [member, rows.map((row) => ({ id: String(row[id]), name: nameOf(row, resource) }))]
    })
    return new Map(await Promise.all(found))
  }

  /** What the branding looks like on the sign-in page. */
  protected async preview(visit: Visit, branding: Item): Promise<Content> {
    const { name, color, logo } = branding
    const hex = typeof color === 'string' ? color.toLowerCase() : ''
    const uploaded = await this.uploadedLogo(visit)
    return {
      preview: {
        name: name || visit.session.tokens.tenantName,
        logo:
          uploaded ?? (typeof logo === 'string' && logo.startsWith('data:image/') ? logo : null),
        brand: /^#[0-9a-f]{6}$/.test(hex) ? `${BRAND_PATH}/${hex.slice(1)}` : null,
      },
    }
  }

  /** The URL of the uploaded logo, or null. */
  private async uploadedLogo(visit: Visit): Promise<string | null> {
    if (this.needs.site.routeOf(LOGO) === null) return null
    const path = filled(LOGO.path, ['logo'])
    const answer = await this.call(visit, { method: 'GET', path })
    const url = isItem(answer.json) ? answer.json['url'] : null
    return typeof url === 'string' ? url : null
  }

  /** The form of an action was sent: calls the API. */
  async act(visit: Visit, place: Place, sent: FormFields): Promise<Outcome> {
    const { site } = this.needs
    const action = place.action!
    const { ids } = place
    // What does not exist for the user is not found, whatever the form says.
    const found = await this.target(visit, place)
    if ('answer' in found) return this.missing(visit, place, found.answer)
    const fields = fieldsOf(site, action, found.item)
    const typed = typedIn(fields, sent)
    const query = new URLSearchParams(visit.request.query as [string, string][])
    if (query.has('rows'))
      return this.form(visit, place, action, { typed, problem: null, isOpen: true })
    const old = action.fills === true ? found.item : null
    const meant = bodyOf(fields, typed, old, old !== null && action.method === 'PATCH')
    if ('field' in meant)
      return this.form(visit, place, action, { typed, problem: null, malformed: meant.field })
    if (action.previews === true && query.has('preview')) {
      const preview = await this.preview(visit, brandingIn(fields, typed))
      return this.form(visit, place, action, { typed, problem: null, preview })
    }
    const hasBody = site.routeOf(action)?.body !== undefined
    const key = new Map(sent).get('idempotency_key') ?? ''
    const base = place.isItem ? itemPath(place, ids.at(-1)!) : listPath(place)
    return this.perform(
      visit,
      place,
      {
        method: action.method,
        path: filled(action.path, ids),
        body: hasBody ? JSON.stringify({ ...meant.body, ...action.fixed }) : null,
        ...(site.routeOf(action)?.idempotent === true && /^[0-9a-f-]{36}$/.test(key)
          ? { idempotencyKey: key }
          : {}),
      },
      { page: `${base}/do/${action.name}`, typed },
    )
  }

  /** A form with a file was sent: calls the API with the file as the body. */
  async upload(visit: Visit, place: Place, { file }: UploadedForm): Promise<Outcome> {
    const action = place.action!
    const found = await this.target(visit, place)
    if ('answer' in found) return this.missing(visit, place, found.answer)
    if (file === null)
      return this.form(visit, place, action, { typed: {}, problem: null, malformed: FILE })
    const page = `${itemPath(place, place.ids.at(-1)!)}/do/${action.name}`
    const { method } = action
    const path = filled(action.path, place.ids)
    const call = { method, path, body: file.bytes, contentType: file.mediaType }
    return this.perform(visit, place, call, { page })
  }

  /** Calls the API for an action that the user confirmed, and shows what came of it. */
  async perform(
    visit: Visit,
    place: Place,
    call: ApiCall,
    { page, typed = {} }: { page: string; typed?: Typed },
  ): Promise<Outcome> {
    const action = place.action!
    const answer = await this.call(visit, call)
    if (answer.status === 401) return refusedToken(answer, call, page)
    if (answer.status >= 400) {
      const found = await this.target(visit, place)
      if ('answer' in found) return this.missing(visit, place, found.answer)
      const fields = fieldsOf(this.needs.site, action, found.item)
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
  ): Promise<Outcome> {
    const language = languageOf(visit.request)
    const { method, path, body } = call
    const sent: unknown = typeof body === 'string' ? JSON.parse(body) : null
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
        ...factsOf(rest, { language }),
        about: null,
        actions: [],
        children: [],
        extra: null,
        onward: null,
        back: this.after(place, rest),
      },
    )
  }
}

function fieldsOf(site: Site, action: ConsoleAction, item: Item | null): readonly Field[] {
  const { without = [], fixed = {} } = action
  const schemas = typeof action.schemas === 'function' ? action.schemas(item) : action.schemas
  return formOf(site.routeOf(action)!)
    .filter(({ name }) => !(name in fixed))
    .flatMap((field) => {
      const schema = schemas?.[field.name]
      return schema === undefined ? [field] : memberFields(schema, field)
    })
    .filter(({ name }) => !without.includes(name))
}

/** The members of the branding that a form has, as typed. */
function brandingIn(fields: readonly Field[], typed: Typed): Item {
  const members = fields
    .filter(({ name }) => name.startsWith('branding.'))
    .map(({ name }) => [name.slice('branding.'.length), (typed[name] ?? '').trim()])
  return Object.fromEntries(members) as Item
}

/** The field with the known values to choose from, by their first word. The text has the others. */
function offering(field: ShownField, offered: readonly string[]) {
  if (offered.length === 0) return { ...field, groups: [] }
  const chosen = new Set(field.value.split('\n'))
  const option = (value: string) => ({
    value,
    label: eventWords(value),
    isChosen: chosen.delete(value),
  })
  const groups = [...new Set(offered.map((value) => value.split('.')[0]!))].map((name) => ({
    label: eventWords(name),
    all: option(`${name}.*`),
    options: offered.filter((value) => value.startsWith(`${name}.`)).map(option),
  }))
  return { ...field, required: false, groups, value: [...chosen].join('\n') }
}

type ShownField = Field & {
  readonly value: string
  readonly cells: readonly (readonly ShownField[])[]
  readonly fault: string | undefined
  readonly hasFault: boolean
  readonly [more: string]: unknown
}

/** A field with its texts. A field of rows has one more row than were typed. */
function shownField(
  field: Field,
  values: Typed,
  suggestions: Suggestions,
  faultOf: (name: string) => string | undefined,
): ShownField {
  const { name, kind, columns, description } = field
  const value = isHidden(field) ? '' : (values[name] ?? '')
  const shownCell = (index: number) => (column: Field) => ({
    ...shownField(
      { ...column, name: `${name}.${index}.${column.name}`, required: false },
      values,
      suggestions,
      faultOf,
    ),
    hint: false,
  })
  const count = kind === 'rows' ? rowsTyped(field, values) + 1 : 0
  const cells = Array.from({ length: count }, (_, index) => columns.map(shownCell(index)))
  const fault = faultOf(name)
  return {
    ...field,
    label: labelOf(name),
    options: kind === 'boolean' ? ['true', 'false'] : field.options,
    value,
    rows: Math.min(12, Math.max(3, value.split('\n').length + 1)),
    hint: kind === 'lines' || kind === 'rows' || kind === 'time' || description !== undefined,
    fault,
    hasFault: fault !== undefined || cells.flat().some(({ hasFault }) => hasFault),
    suggestions: suggestions.get(name.split('.').at(-1)!) ?? [],
    cells,
  }
}
