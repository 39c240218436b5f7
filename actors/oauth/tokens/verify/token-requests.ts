/** POST /oauth/introspect, /oauth/revoke, and requests of other endpoints that a client authenticates. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import { countedClient, provenKey } from '../clients/client-of.js'
import { metered } from '../clients/client-quotas.js'
import { isSignedByApplication } from '../clients/client-keys.js'
import { type Client, publicClientId } from '../clients/clients.js'
import { readRequestObject } from '../clients/request-object.js'
import {
  type IdentifyClient,
  INTROSPECTION_SCOPE,
  introspectionBody,
  type IntrospectRequest,
  type RequestObject,
  type TokenRequest,
} from '../protocol.js'
import type { SigningAlgorithm } from '../../signing-keys/protocol.js'
import { formOf, refuse, refuseScope } from '../refusals.js'
import type { TokenTools } from '../tools.js'
import { type Inspector, inspectorOf, introspect } from './introspection.js'
import { revoke } from './revocation.js'

/** RFC 9701 section 5. Not the type of an access token: neither can stand for the other. */
const INTROSPECTION_TYPE = 'token-introspection+jwt'
const ACCESS_SCHEME_NAME = /^(bearer|dpop)( |$)/i
const ACCESS_SCHEME = /^(bearer|dpop) +([A-Za-z0-9._~+/-]+=*)$/i

export async function identifyClient(
  tools: TokenTools,
  request: IdentifyClient,
  context: MessageContext,
) {
  const form = formOf(request.form)
  if ('tag' in form) return form
  const counted = await countedClient(tools, request, form, request.quota, context)
  if (counted.tag === 'oauth_refused') return counted
  const { client, windows } = counted
  const proof = await provenKey(tools, request)
  if ('tag' in proof) return metered(proof, windows)
  const { kind, confidential, row } = client
  const documentSha256 = client.kind === 'application' ? client.documentSha256 : undefined
  const { jkt } = proof
  const object = request.takesRequestObject === true ? form.get('request') : null
  const requestObject = object === null ? undefined : await verifiedObject(tools, client, object)
  const tag = 'identified' as const
  const known = { kind, clientId: row.id, confidential, jkt, documentSha256 }
  return metered({ tag, ...known, requestObject }, windows)
}

async function verifiedObject(
  { issuer, clock, documents }: TokenTools,
  client: Client,
  object: string,
): Promise<RequestObject> {
  const expected = { clientId: publicClientId(client), issuer, nowSecs: clock.nowSecs() }
  const read = readRequestObject(object, expected)
  if ('fault' in read) return read
  const { jws, parameters } = read
  const isSigned =
    client.kind === 'application' && (await isSignedByApplication(documents, client.row, jws))
  return isSigned
    ? { alg: jws.header.alg, parameters }
    : { fault: 'no key of the client made its signature' }
}

export async function introspectToken(
  tools: TokenTools,
  request: IntrospectRequest,
  context: MessageContext,
) {
  const form = formOf(request.form)
  if ('tag' in form) return form
  const { authorization, dpopProof, httpMethod, httpUrl, address } = request
  const accessToken = ACCESS_SCHEME.exec(authorization ?? '')
  let inspector: Inspector | null
  let requester: string
  let algorithm: SigningAlgorithm = 'RS256'
  if (accessToken === null && ACCESS_SCHEME_NAME.test(authorization ?? ''))
    return {
      tag: 'refused' as const,
      error: 'unauthorized' as const,
      isMalformed: true as const,
      description: 'the Authorization header contains no access token',
    }
  if (accessToken === null) {
    // Resource servers introspect far more often than clients ask for tokens.
    const counted = await countedClient(tools, request, form, null, context)
    if (counted.tag === 'oauth_refused') return counted
    const { client } = counted
    requester = publicClientId(client)
    if (client.kind === 'application')
      algorithm = client.row.introspectionSignedResponseAlg ?? algorithm
    inspector = inspectorOf(client, requester)
    if (inspector === null)
      return refuse(
        'invalid_client',
        'a public client cannot introspect tokens',
        'client_method_wrong',
      )
  } else {
    const scheme: 'DPoP' | 'Bearer' = accessToken[1]!.toLowerCase() === 'dpop' ? 'DPoP' : 'Bearer'
    const presented = { token: accessToken[2]!, scheme, dpopProof, httpMethod, httpUrl, address }
    const caller = await tools.verifier.authenticate(presented, context)
    if (caller.tag === 'refused') return caller
    if (!caller.principal.scopes.includes(INTROSPECTION_SCOPE))
      return refuseScope(INTROSPECTION_SCOPE)
    requester = caller.principal.clientId
    inspector = { tenantId: caller.principal.tenantId, clientId: null }
  }
  const token = form.get('token')
  if (token === null) return refuse('invalid_request', 'token is missing', 'parameter_missing')
  const answer = await introspect(tools, inspector, token, context)
  if (request.signed !== true) return { tag: 'introspected' as const, answer }
  const jwt = { iss: tools.issuer, aud: requester, iat: tools.clock.nowSecs() }
  const claims = JSON.stringify({ ...jwt, token_introspection: introspectionBody(answer) })
  const signed = await tools.keys.sign({ typ: INTROSPECTION_TYPE, claims, algorithm })
  if (signed.tag !== 'signed') throw new Error('no signing key is available')
  return { tag: 'introspected_signed' as const, jwt: signed.token }
}

export async function revokeToken(
  tools: TokenTools,
  request: TokenRequest,
  context: MessageContext,
) {
  const form = formOf(request.form)
  if ('tag' in form) return form
  const counted = await countedClient(tools, request, form, 'token', context)
  if (counted.tag === 'oauth_refused') return counted
  return metered(await revoke(tools, counted.client, form, context), counted.windows)
}
