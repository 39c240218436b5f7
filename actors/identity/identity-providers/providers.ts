/** A tenant's identity providers. Their client secrets are sealed and never shown again. */
import { createOnce } from '../../platform/creation.js'
import { appendEvents } from '../../../storage/platform/outbox.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import {
  deleteIdentityProvider,
  findIdentityProvider,
  insertIdentityProvider,
  listIdentityProviders,
  lockIdentityProvider,
  replaceIdentityProviderRow,
  providerSecretContext,
  type IdentityProviderRow,
} from '../../../storage/identity/identity-providers.js'
import { eventBy, type EventContext, eventContext } from '../../domain/events.js'
import { isUuid } from '../../domain/ids.js'
import { changedName, refusedName } from '../../domain/shown-names.js'
import { listOf } from '../../platform/paging.js'
import { judgeTarget, type TargetRules, URL_FAULTS } from '../../platform/outbound-http/targets.js'
import type { Handling, IdentityProvidersTools } from './needs.js'
import type { Invalid, ProviderDraft, ProviderRecord } from './protocol.js'
import { inTenant } from '../../platform/in-tenant.js'
import { invalid } from '../../domain/entities/messages.js'

const UNKNOWN = { tag: 'unknown' } as const
const OFF = { tag: 'off' } as const

type Checked = Omit<ProviderDraft, 'clientSecret'> & { readonly hasSecret: boolean }

export const listSsoProviders: Handling<'listSsoProviders'> = async (needs, message, context) => {
  if (!needs.settings.enabled) return OFF
  const show = (row: IdentityProviderRow) => recordOf(needs, row)
  return listOf(needs, message.tenantId, message, context, { list: listIdentityProviders, show })
}

export const createSsoProvider: Handling<'createSsoProvider'> = async (
  needs,
  { caller, draft, idempotency },
  context,
) => {
  const { settings, random, clock, urlRules } = needs
  if (!settings.enabled) return OFF
  const fault = draftFault({ ...draft, hasSecret: draft.clientSecret !== undefined }, urlRules)
  if (fault !== undefined) return fault
  const { tenantId } = caller.principal
  const id = random.uuid()
  const clientSecretSealed = await seal(needs, tenantId, id, draft.clientSecret)
  const now = clock.now()
  const { clientSecret: _, ...configuration } = draft
  const times = { createdAt: now, updatedAt: now }
  const row = { ...configuration, tenantId, id, clientSecretSealed, ...times }
  const most = settings.max_providers_per_tenant
  const insert = async (tx: Transaction) => {
    if (!(await insertIdentityProvider(tx, row, most))) return { tag: 'full', most } as const
    appendConfigured(tx, 'created', row, eventContext(needs, caller, context))
    return { tag: 'created', provider: recordOf(needs, row), replayed: false } as const
  }
  return createOnce(needs, { caller, idempotency }, context, insert)
}

export const getSsoProvider: Handling<'getSsoProvider'> = async (
  needs,
  { tenantId, id },
  context,
) => {
  if (!needs.settings.enabled) return OFF
  if (!isUuid(id)) return UNKNOWN
  const row = await inTenant(needs.database, tenantId, context, (tx) =>
    findIdentityProvider(tx, tenantId, id),
  )
  return row === undefined ? UNKNOWN : { tag: 'found', provider: recordOf(needs, row) }
}

export const updateSsoProvider: Handling<'updateSsoProvider'> = async (
  needs,
  { caller, id, change },
  context,
) => {
  if (!needs.settings.enabled) return OFF
  if (!isUuid(id)) return UNKNOWN
  const { tenantId } = caller.principal
  const { clientSecret, ...rest } = change
  const fresh = await seal(needs, tenantId, id, clientSecret)
  const stated = Object.fromEntries(
    Object.entries(rest).filter(([, value]) => value !== undefined),
  ) as Partial<Omit<ProviderDraft, 'clientSecret'>>
  return inTenant(needs.database, tenantId, context, async (tx) => {
    const before = await lockIdentityProvider(tx, tenantId, id)
    if (before === undefined) return UNKNOWN
    const name = changedName(stated.name ?? before.name, before.name)
    if (name === null) return refusedName('/name')
    const method = stated.tokenEndpointAuthMethod ?? before.tokenEndpointAuthMethod
    const kept = clientSecret === undefined ? before.clientSecretSealed : fresh
    // A client without authentication needs no secret, so none is stored.
    const clientSecretSealed = method === 'none' && clientSecret === undefined ? null : kept
    const updatedAt = needs.clock.now()
    const row = { ...before, ...stated, name, clientSecretSealed, updatedAt }
    const hasSecret = clientSecretSealed !== null
    const fault = draftFault({ ...row, hasSecret }, needs.urlRules)
    if (fault !== undefined) return fault
    await replaceIdentityProviderRow(tx, row)
    appendConfigured(tx, 'changed', row, eventContext(needs, caller, context))
    return { tag: 'found', provider: recordOf(needs, row) }
  })
}

/** Removes linked identities as well. They belong to accounts, so the transaction crosses tenants. */
export const deleteSsoProvider: Handling<'deleteSsoProvider'> = async (
  needs,
  { caller, id },
  context,
) => {
  if (!needs.settings.enabled) return OFF
  if (!isUuid(id)) return UNKNOWN
  const { tenantId } = caller.principal
  return needs.database.system(async (tx) => {
    const row = await lockIdentityProvider(tx, tenantId, id)
    if (row === undefined) return UNKNOWN
    await deleteIdentityProvider(tx, tenantId, id, needs.clock.now())
    appendConfigured(tx, 'deleted', row, eventContext(needs, caller, context))
    return { tag: 'deleted' }
  }, context)
}

function recordOf(
  { callbackOf }: IdentityProvidersTools,
  { clientSecretSealed, ...rest }: IdentityProviderRow,
): ProviderRecord {
  const hasClientSecret = clientSecretSealed !== null
  return { ...rest, hasClientSecret, redirectUri: callbackOf(rest.id) }
}

async function seal(
  { sealer }: IdentityProvidersTools,
  tenantId: string,
  id: string,
  secret: string | undefined,
): Promise<Uint8Array | null> {
  if (secret === undefined) return null
  return sealer.seal(tenantId, providerSecretContext(id), Buffer.from(secret, 'utf8'))
}

function appendConfigured(
  tx: Transaction,
  change: 'created' | 'changed' | 'deleted',
  { id, name, issuer, active }: IdentityProviderRow,
  by: EventContext,
): void {
  const resource = { type: 'sso_provider', id }
  const fields = { change, name, issuer, active }
  appendEvents(tx, [eventBy('sso.configured', resource, by, fields)])
}

/** Returns undefined when the configuration is valid. */
function draftFault(draft: Checked, rules: TargetRules): Invalid | undefined {
  const addresses = [
    ['/issuer', draft.issuer],
    ['/authorization_endpoint', draft.authorizationEndpoint],
    ['/token_endpoint', draft.tokenEndpoint],
    ['/userinfo_endpoint', draft.userinfoEndpoint],
    ['/jwks_uri', draft.jwksUri],
  ] as const
  for (const [pointer, url] of addresses) {
    if (url === null) continue
    const target = judgeTarget(url, rules)
    if (target.tag === 'refused') return invalid(pointer, URL_FAULTS[target.fault])
  }
  if (new URL(draft.issuer).search !== '') {
    return invalid('/issuer', 'An issuer must not have a query (OpenID Connect Core section 2).')
  }
  const endpoints = [draft.authorizationEndpoint, draft.tokenEndpoint, draft.jwksUri]
  const stated = endpoints.filter((endpoint) => endpoint !== null).length
  if (stated !== 0 && stated !== endpoints.length) {
    return invalid(
      '/authorization_endpoint',
      'Set authorization_endpoint, token_endpoint and jwks_uri together, or leave all out for discovery.',
    )
  }
  if (draft.userinfoEndpoint !== null && stated === 0) {
    return invalid(
      '/userinfo_endpoint',
      'Leave it out when the other endpoints come from discovery.',
    )
  }
  if (!draft.scopes.includes('openid')) return invalid('/scopes', 'Must include openid.')
  if (draft.hasSecret === (draft.tokenEndpointAuthMethod === 'none')) {
    return invalid('/client_secret', 'Required unless token_endpoint_auth_method is none.')
  }
  return undefined
}
