/** The map of the console: which resource, object and action a path names, and what a user may see of them. */
import { demandsOf } from '../../request/authenticate.js'
import type { Route } from '../../route.js'
import type { ConsoleAction, ConsoleResource, Item, Operation } from './declaration.js'
import { accessResources } from './areas/access.js'
import { commerceResources } from './areas/commerce.js'
import { deploymentResources } from './areas/deployment.js'
import { identityResources } from './areas/identity.js'
import { vaultResources } from './areas/vault.js'

/** All resources, in the order of the menu. */
export const RESOURCES: readonly ConsoleResource[] = [
  ...accessResources,
  ...identityResources.filter(({ group }) => group === 'people'),
  ...vaultResources,
  ...commerceResources,
  ...identityResources.filter(({ group }) => group === 'tenant'),
  ...deploymentResources,
]

/** What a path below /console names. */
export type Place = {
  readonly resource: ConsoleResource
  /** Above a list within an object. */
  readonly parent: ConsoleResource | null
  /** The ids in the path. The id of the object above comes first. */
  readonly ids: readonly string[]
  /** The object itself, in contrast to the list. */
  readonly isItem: boolean
  readonly action: ConsoleAction | null
}

export class Site {
  private readonly routes: ReadonlyMap<string, Route>
  private readonly features: ReadonlySet<string>
  private readonly docs: ReadonlySet<string>

  /**
   * What this process does not serve, and features that are off, are absent from the console.
   * @param features the capabilities that settings turn on.
   * @param docs the pages of the documentation, such as `guides/webhooks/webhooks.md`.
   */
  constructor(routes: readonly Route[], features: readonly string[], docs: readonly string[]) {
    this.features = new Set(features)
    this.docs = new Set(docs)
    this.routes = new Map(routes.map((route) => [`${route.method} ${route.path}`, route]))
  }

  routeOf({ method, path }: Operation): Route | null {
    return this.routes.get(`${method} ${path}`) ?? null
  }

  /** The path of the page about a resource or feature, or null if the documentation is not installed. */
  docsOf({ docs }: Pick<ConsoleResource, 'docs'>): string | null {
    return this.docs.has(`${docs}.md`) ? `/docs/${docs}` : null
  }

  /** The resource of this name, or null if the user may not see it. */
  named(name: string | undefined, scopes: readonly string[]): ConsoleResource | null {
    return this.resources(scopes).find((resource) => resource.name === name) ?? null
  }

  /** The resources that a user with these scopes may see. */
  resources(scopes: readonly string[]): readonly ConsoleResource[] {
    return RESOURCES.filter((resource) => this.isVisible(resource, scopes))
  }

  isVisible({ list, single, needs, feature }: ConsoleResource, scopes: readonly string[]): boolean {
    if (feature !== undefined && !this.features.has(feature)) return false
    const isNeeded = needs === undefined || needs.some((scope) => scopes.includes(scope))
    const operation = list ?? single
    return isNeeded && operation !== undefined && this.may(operation, scopes)
  }

  /** The actions on a list (`item` null) or on an object. */
  actions(
    { actions = [] }: ConsoleResource,
    item: Item | null,
    scopes: readonly string[],
  ): readonly ConsoleAction[] {
    return actions.filter(
      (action) =>
        (action.on === 'item') === (item !== null) &&
        action.hidden !== true &&
        this.may(action, scopes) &&
        (item === null || (action.when?.(item) ?? true)),
    )
  }

  /** The place of path segments below /console. Null if it does not exist, or not for this user. */
  place(segments: readonly string[], scopes: readonly string[]): Place | null {
    const [name = '', ...rest] = segments
    const top = RESOURCES.find((resource) => resource.name === name)
    if (top === undefined || !this.isVisible(top, scopes)) return null
    const child = rest[1] === undefined || rest[0] === 'do' || rest[1] === 'do' ? null : rest[1]
    if (child === null) return this.within(top, null, [], rest, scopes)
    const found = top.children?.find((resource) => resource.name === child)
    if (found === undefined || !this.isVisible(found, scopes)) return null
    return this.within(found, top, [rest[0]!], rest.slice(2), scopes)
  }

  private within(
    resource: ConsoleResource,
    parent: ConsoleResource | null,
    above: readonly string[],
    rest: readonly string[],
    scopes: readonly string[],
  ): Place | null {
    const base = { resource, parent }
    if (rest.length === 0) return { ...base, ids: above, isItem: false, action: null }
    if (rest[0] === 'do') {
      const action = this.actionNamed(resource, 'list', rest[1], scopes)
      return action && { ...base, ids: above, isItem: false, action }
    }
    const ids = [...above, rest[0]!]
    if (rest.length === 1)
      return resource.opens === false ? null : { ...base, ids, isItem: true, action: null }
    const action = this.actionNamed(resource, 'item', rest[2], scopes)
    return action && { ...base, ids, isItem: true, action }
  }

  private actionNamed(
    { actions = [] }: ConsoleResource,
    on: ConsoleAction['on'],
    name: string | undefined,
    scopes: readonly string[],
  ): ConsoleAction | null {
    const found = actions.find((action) => action.on === on && action.name === name)
    return found !== undefined && this.may(found, scopes) ? found : null
  }

  /** Whether to show an operation. What the API allows is decided by the API. */
  may(operation: Operation, scopes: readonly string[]): boolean {
    const route = this.routeOf(operation)
    if (route === null) return false
    const demands = demandsOf(route.security)
    if (demands === null) return true
    const { scopes: wanted = [], directScopes = [], subjects, console, direct } = demands
    if (subjects?.includes('human') === false && console !== 'accepted') return false
    // The console's tokens are direct.
    const enough = direct === 'forbidden' ? directScopes : [...wanted, ...directScopes]
    if (direct === 'forbidden' && enough.length === 0) return false
    return enough.length === 0 || enough.some((scope) => scopes.includes(scope))
  }
}

/** The path of a list. */
export function listPath({
  resource,
  parent,
  ids,
}: Pick<Place, 'resource' | 'parent' | 'ids'>): string {
  if (parent === null) return `/console/${resource.name}`
  return `/console/${parent.name}/${encodeURIComponent(ids[0] ?? '')}/${resource.name}`
}

/** The path of an object of a list. */
export function itemPath(place: Pick<Place, 'resource' | 'parent' | 'ids'>, id: string): string {
  return `${listPath(place)}/${encodeURIComponent(id)}`
}
