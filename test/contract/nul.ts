/**
 * NUL, which PostgreSQL cannot store, in all members of JSON bodies, form fields and query parameters of all operations.
 * It is refused or ignored, and never an internal error.
 */
import type { Api, Json } from '../support/api.js'
import type { PopulatedTenant } from '../support/service/populated-service.js'
import { CALLBACK, relyingParty } from '../support/oauth/relying-party.js'
import { sampler, type Schema } from '../support/storage/schema-sample.js'

const NUL = 'a\0b'
const FORM = 'application/x-www-form-urlencoded'
const GRANTS = ['authorization_code', 'refresh_token', 'client_credentials']
const ENDS_THE_SESSION = /logout|end-session|\/sessions|sign-out|elsewhere/
/** Paths that read no session of a browser. */
const OF_PROGRAMS = /^\/(?:api|scim|\.well-known)\//
const METHODS = ['get', 'post', 'put', 'patch', 'delete']

type Operation = {
  readonly security?: readonly Json[]
  readonly parameters?: readonly { readonly name: string; readonly in: string }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { schema: Schema }>> }
}

/** The operations of the document that answer NUL in a member with an internal error, and how many requests were sent. */
export async function nulFaults(
  api: Api,
  { workspace, person, objects }: PopulatedTenant,
  document: Json,
): Promise<{ readonly count: number; readonly faults: readonly string[] }> {
  const client = await relyingParty(api.at, workspace, { grantTypes: GRANTS })
  const components = (document['components'] as Json)['schemas'] as Record<string, Schema>
  const sample = sampler(document, { event_types: ['*'] })
  const known: Readonly<Record<string, string>> = {
    client_id: client.clientId,
    client_secret: client.secret,
    redirect_uri: CALLBACK,
    response_type: 'code',
    grant_type: 'client_credentials',
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    code_challenge_method: 'S256',
    scope: 'openid',
    rail: 'sandbox',
    outcome: 'succeed',
    buyer_country: 'US',
    buyer_region: 'CA',
  }
  const filled = (path: string) =>
    path.replace(/\{[a-z_]+\}/g, (_all, at: number) => {
      return objects[path.slice(0, path.indexOf('}', at) + 1)] ?? 'nothing'
    })
  const membersOf = (schema: Schema): Record<string, Schema> => {
    const name = typeof schema['$ref'] === 'string' ? schema['$ref'].split('/').at(-1)! : null
    const found = name === null ? schema : (components[name] ?? {})
    const parts = [...(found.anyOf ?? []), ...(found.oneOf ?? [])]
    return Object.assign({}, found.properties, ...parts.map(membersOf)) as Record<string, Schema>
  }
  const { forms } = await person.browser.get('/auth/account')
  const csrf = forms.at(-1)?.fields['csrf_token'] ?? ''

  let count = 0
  const faults: string[] = []
  const note = (status: number, where: string) => {
    count += 1
    if (status >= 500 && status !== 501) faults.push(`${status} ${where}`)
  }
  const tokenFor = (path: string) =>
    path.startsWith('/api/v1/control-plane/') ? workspace.operator : workspace.token

  for (const [path, item] of Object.entries(document['paths'] as Record<string, Json>)) {
    // This operation would end the test tenant's access.
    if (path === '/api/v1/tenant/activate') continue
    for (const method of METHODS.filter((one) => one in item)) {
      const operation = item[method] as Operation
      const where = `${method.toUpperCase()} ${path}`
      const at = filled(path)
      const queries = (operation.parameters ?? []).filter((one) => one.in === 'query')
      for (const { name } of queries) {
        const all = Object.fromEntries(queries.map((one) => [one.name, known[one.name]]))
        const said = Object.entries({ ...all, [name]: NUL }).filter(
          (pair): pair is [string, string] => pair[1] !== undefined,
        )
        const target = `${at}?${new URLSearchParams(said).toString()}`
        const { status } = await api.call(method.toUpperCase(), target, { token: tokenFor(path) })
        note(status, `${where} query ${name}`)
        if (method === 'get' && !OF_PROGRAMS.test(path)) {
          note((await person.browser.get(target)).status, `${where} query ${name}, in a browser`)
        }
      }
      const [[type, described] = []] = [Object.entries(operation.requestBody?.content ?? {})[0]]
      if (described?.schema === undefined) continue
      for (const name of Object.keys(membersOf(described.schema))) {
        if (type === FORM) {
          const fields = Object.keys(membersOf(described.schema)).flatMap((one) =>
            known[one] === undefined ? [] : [[one, known[one]] as const],
          )
          const form = { ...Object.fromEntries(fields), csrf_token: csrf, [name]: NUL }
          note((await api.form(at, form)).status, `${where} field ${name}`)
          if (ENDS_THE_SESSION.test(path)) continue
          note((await person.browser.post(at, form)).status, `${where} field ${name}, in a browser`)
        } else if (type === 'application/json') {
          const json = { ...(sample(described.schema) as Json), [name]: NUL }
          const { status } = await api.call(method.toUpperCase(), at, {
            token: tokenFor(path),
            json,
          })
          note(status, `${where} member ${name}`)
        }
      }
    }
  }
  return { count, faults }
}
