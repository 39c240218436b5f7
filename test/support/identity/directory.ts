/** A directory that provisions users into a fresh workspace over SCIM. */
import type { Answer, Api, Json, Workspace } from '../api.js'

export const SCIM_USER = 'urn:ietf:params:scim:schemas:core:2.0:User'
export const SCIM_ENTERPRISE = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'
export const SCIM_GROUP = 'urn:ietf:params:scim:schemas:core:2.0:Group'
export const SCIM_PATCH = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'

export type Directory = {
  readonly workspace: Workspace
  readonly tokenId: string
  readonly token: string
  /** Sends a request below /scim/v2 with the token. */
  send(
    method: string,
    path: string,
    json?: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer>
  /** Creates a user. @throws unless it is 201. */
  create(userName: string, more?: Json): Promise<Json>
  patch(id: unknown, ...operations: readonly Json[]): Promise<Answer>
  /** The user names that a filter finds, in order. */
  names(filter: string): Promise<readonly unknown[]>
}

export async function openDirectory(
  api: Api,
  token: Json = {},
  at?: Workspace,
): Promise<Directory> {
  const workspace = at ?? (await api.workspace())
  const made = await api.post('/api/v1/scim/tokens', workspace.token, token)
  if (made.status !== 201) throw new Error(JSON.stringify(made.body))
  const secret = String(made.body['token'])
  const send: Directory['send'] = (method, path, json, headers = {}) =>
    api.call(method, `/scim/v2${path}`, {
      token: secret,
      json,
      headers:
        json === undefined ? headers : { 'content-type': 'application/scim+json', ...headers },
    })
  return {
    workspace,
    tokenId: String(made.body['id']),
    token: secret,
    send,
    async create(userName, more = {}) {
      const { status, body } = await send('POST', '/Users', {
        schemas: [SCIM_USER],
        userName,
        ...more,
      })
      if (status !== 201) throw new Error(`${status} ${JSON.stringify(body)}`)
      return body
    },
    patch: (id, ...operations) =>
      send('PATCH', `/Users/${String(id)}`, { schemas: [SCIM_PATCH], Operations: operations }),
    async names(filter) {
      const { status, body } = await send('GET', `/Users?filter=${encodeURIComponent(filter)}`)
      if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
      return (body['Resources'] as Json[]).map((each) => each['userName'])
    },
  }
}
