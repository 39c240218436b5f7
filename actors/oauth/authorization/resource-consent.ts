/** Consents for API resources. */
import type { ApiResourceRow } from '../../../storage/oauth/api-resources.js'
import { scopesOfResources } from '../tokens/issue/api-resource.js'

/** The scopes of a consent that count for one of its resources: not those that only the others define. */
export function scopesAt(
  resource: ApiResourceRow,
  resources: readonly ApiResourceRow[],
  consented: readonly string[],
): readonly string[] {
  const all = scopesOfResources(resources)
  const own = scopesOfResources([resource])
  return consented.filter((scope) => own.includes(scope) || !all.includes(scope))
}
