/** Consents for API resources. */
import type { ApiResource } from '../../../domain/entities/api-resource.js'
import { scopesOfResources } from '../issue/api-resource.js'

/** The scopes of a consent that count for one of its resources: not those that only the others define. */
export function scopesAt(
  resource: ApiResource,
  resources: readonly ApiResource[],
  consented: readonly string[],
): readonly string[] {
  const all = scopesOfResources(resources)
  const own = scopesOfResources([resource])
  return consented.filter((scope) => own.includes(scope) || !all.includes(scope))
}
