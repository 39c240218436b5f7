/** A tenant's identity providers. Their client secrets are sealed and never shown again. */
import type { Handlers } from '../../../runtime/kernel/actor.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import { appendEvents, type NewEvent } from '../../../storage/platform/outbox.js'
import {
  deleteIdentityProvider,
  findIdentityProvider,
  insertIdentityProvider,
  listIdentityProviders,
  lockIdentityProvider,
  updateIdentityProvider,
  providerSecretContext,
  type IdentityProviderRow,
} from '../../../storage/identity/identity-providers.js'
import { actorOf, type Caller, doneBy } from '../../domain/audit.js'
import { eventData } from '../../domain/events.js'
import { isUuid } from '../../domain/ids.js'
import { changedName, refusedName } from '../../domain/shown-names.js'
import { page } from '../../platform/paging.js'
import { judgeTarget, type TargetRules, URL_FAULTS } from '../../platform/outbound-http/targets.js'
import type { IdentityProvidersNeeds } from './needs.js'
import type {
  IdentityProvidersProtocol,
  Invalid,
  ProviderDraft,
  ProviderRecord,
} from './protocol.js'

const UNKNOWN = { tag: 'unknown' } as const
const OFF = { tag: 'off' } as const

type CheckedDraft = ProviderDraft & { readonly hasSecret: boolean }

export function providerSteps(
  needs: IdentityProvidersNeeds,
): Pick<
  Handlers<IdentityProvidersProtocol>,
  | 'listSsoProviders'
  | 'createSsoProvider'
  | 'getSsoProvider'
  | 'updateSsoProvider'
  | 'deleteSsoProvider'
> {
  const { database, sealer, clock, random, settings, urlRules, callbackOf } = needs
  const recordOf = (row: IdentityProviderRow): ProviderRecord => {
    const { clientSecretSealed, ...rest } = row
    return {
      ...rest,
      hasClientSecret: clientSecretSealed !== null,
      redirectUri: callbackOf(row.id),
    }
  }
  const seal = async (tenantId: string, id: string, secret: string | null) =>
    secret === null
      ? null
      : sealer.seal(tenantId, providerSecretContext(id), Buffer.from(secret, 'utf8'))

  function configured(
    caller: Caller,
    row: Pick<IdentityProviderRow, 'id' | 'name' | 'issuer' | 'active'>,
    change: 'created' | 'changed' | 'deleted',
    now: Date,
    requestId: string | undefined,
  ): NewEvent {
    const resource = { type: 'sso_provider', id: row.id }
    const { name, issuer, active } = row
    const subject = { actor: actorOf(caller), resource, requestId }
    return {
      id: random.uuid(),
      tenantId: caller.principal.tenantId,
      type: 'sso.configured',
      occurredAt: now,
      data: eventData(subject, { change, name, issuer, active }),
      audit: doneBy(caller),
    }
  }

  return {
    async listSsoProviders({ tenantId, limit, after }, { signal }) {
      if (!settings.enabled) return OFF
      const rows = await database.tenant(
        tenantId,
        (tx) => listIdentityProviders(tx, tenantId, limit + 1, after),
        { signal },
      )
      const { items, next } = page(rows, limit)
      return { tag: 'listed', providers: items.map(recordOf), next }
    },

    async createSsoProvider({ caller, draft, idempotency }, { signal, requestId }) {
      if (!settings.enabled) return OFF
      const fault = draftFault({ ...draft, hasSecret: draft.clientSecret !== null }, urlRules)
      if (fault !== null) return fault
      const { tenantId } = caller.principal
      const id = random.uuid()
      const clientSecretSealed = await seal(tenantId, id, draft.clientSecret)
      const now = clock.now()
      const { clientSecret: _, ...configuration } = draft
      const row = {
        ...configuration,
        tenantId,
        id,
        clientSecretSealed,
        createdAt: now,
        updatedAt: now,
      }
      return database.tenant(
        tenantId,
        (tx) =>
          idempotently(
            tx,
            idempotency,
            async () => {
              const most = settings.max_providers_per_tenant
              if (!(await insertIdentityProvider(tx, row, most)))
                return { tag: 'full', most } as const
              appendEvents(tx, [configured(caller, row, 'created', now, requestId)])
              return { tag: 'created', provider: recordOf(row), replayed: false } as const
            },
            (outcome) => (outcome.tag === 'created' ? outcome : undefined),
          ),
        { signal },
      )
    },

    async getSsoProvider({ tenantId, id }, { signal }) {
      if (!settings.enabled) return OFF
      if (!isUuid(id)) return UNKNOWN
      const row = await database.tenant(tenantId, (tx) => findIdentityProvider(tx, tenantId, id), {
        signal,
      })
      return row === undefined ? UNKNOWN : { tag: 'found', provider: recordOf(row) }
    },

    async updateSsoProvider({ caller, id, change }, { signal, requestId }) {
      if (!settings.enabled) return OFF
      if (!isUuid(id)) return UNKNOWN
      const { tenantId } = caller.principal
      const { clientSecret, ...rest } = change
      const fresh = await seal(tenantId, id, clientSecret ?? null)
      const stated = Object.fromEntries(
        Object.entries(rest).filter(([, value]) => value !== undefined),
      ) as Partial<Omit<ProviderDraft, 'clientSecret'>>
      return database.tenant(
        tenantId,
        async (tx) => {
          const before = await lockIdentityProvider(tx, tenantId, id)
          if (before === undefined) return UNKNOWN
          const name = changedName(stated.name ?? before.name, before.name)
          if (name === null) return refusedName('/name')
          const now = clock.now()
          const method = stated.tokenEndpointAuthMethod ?? before.tokenEndpointAuthMethod
          const kept = clientSecret === undefined ? before.clientSecretSealed : fresh
          // A client without authentication needs no secret, so none is stored.
          const sealed = method === 'none' && clientSecret == null ? null : kept
          const row = { ...before, ...stated, name, clientSecretSealed: sealed, updatedAt: now }
          const fault = draftFault(
            { ...row, clientSecret: clientSecret ?? null, hasSecret: sealed !== null },
            urlRules,
          )
          if (fault !== null) return fault
          await updateIdentityProvider(tx, row)
          appendEvents(tx, [configured(caller, row, 'changed', now, requestId)])
          return { tag: 'found', provider: recordOf(row) } as const
        },
        { signal },
      )
    },

    async deleteSsoProvider({ caller, id }, { signal, requestId }) {
      if (!settings.enabled) return OFF
      if (!isUuid(id)) return UNKNOWN
      const { tenantId } = caller.principal
      // Removes linked identities as well. They belong to accounts, so the transaction crosses tenants.
      return database.system(
        async (tx) => {
          const row = await lockIdentityProvider(tx, tenantId, id)
          if (row === undefined) return UNKNOWN
          const now = clock.now()
          await deleteIdentityProvider(tx, tenantId, id, now)
          appendEvents(tx, [configured(caller, row, 'deleted', now, requestId)])
          return { tag: 'deleted' } as const
        },
        { signal },
      )
    },
  }
}

/** Returns null when the configuration is valid. */
export function draftFault(draft: CheckedDraft, rules: TargetRules): Invalid | null {
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
  return null
}

const invalid = (pointer: string, detail: string): Invalid => ({ tag: 'invalid', pointer, detail })
