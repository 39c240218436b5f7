/** What the egress proxy and the clients of it share. */

export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const
export type ProxyMethod = (typeof METHODS)[number]

/** The header or query parameter that a scheme sets. The caller must not send it. */
type InjectionPoint =
  | { readonly in: 'header'; readonly name: string }
  | { readonly in: 'query'; readonly key: string }

/** Null for the scheme `none`. */
export function injectionPoint(authScheme: string): InjectionPoint | null {
  if (authScheme === 'bearer' || authScheme === 'basic')
    return { in: 'header', name: 'authorization' }
  if (authScheme.startsWith('header:')) return { in: 'header', name: authScheme.slice(7) }
  if (authScheme.startsWith('query:')) return { in: 'query', key: authScheme.slice(6) }
  return null
}
