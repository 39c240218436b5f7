/** The kinds of resources that `svc apply` manages: schema, key and operations of each. */
import { z } from 'zod'
import { draftFault as applicationFault } from '../../../actors/oauth/clients/registered/rules.js'
import { draftFault as resourceFault } from '../../../actors/oauth/resources/api-resources/rules.js'
import { draftFault as webhookFault } from '../../../actors/webhooks/subscriptions/rules.js'
import { apiResource } from '../../../actors/domain/entities/api-resource.js'
import { draftOf } from '../../../actors/domain/entities/entity.js'
import { EVENT_TYPES } from '../../../actors/domain/events.js'
import { CreateProvider } from '../../../gateway/routes/identity/identity-provider-shapes.js'
import { PolicyChange } from '../../../gateway/routes/identity/organization/transfers.js'
import { ChangeTenantSettings } from '../../../gateway/routes/identity/tenants.js'
import { accessPolicy } from '../../../actors/domain/entities/access-policy.js'
import {
  draftOf as applicationDraft,
  ReplaceApplication,
} from '../../../gateway/routes/oauth/clients.js'
import {
  CreateWebhook,
  draftOf as webhookDraft,
} from '../../../gateway/routes/webhooks/webhook-shapes.js'

export type Members = Readonly<Record<string, unknown>>

/** A value that the service would refuse. `pointer` is a JSON pointer into the members. */
type Fault = { readonly pointer: string; readonly detail: string }
type MaybeFault = Fault | undefined

/** What validation knows of the deployment and of the other resources of the file. */
type Surroundings = {
  readonly issuer: string
  /** Names of all scopes of API resources, existing and planned. */
  readonly resourceScopes: readonly string[]
}

export type Kind = {
  /** The table of the file. */
  readonly section: string
  /** The member that names a resource within the tenant. Null: there is exactly one. */
  readonly key: string | null
  /** Members of the file, with what a creation requires. */
  readonly schema: z.ZodObject
  readonly collection: string
  /** PUT replaces all members, PATCH changes those that are sent. */
  readonly update: 'PUT' | 'PATCH'
  /** The resource always exists: it is neither created nor deleted. */
  readonly fixed: boolean
  /** A member that is sent at the creation and never returned. */
  readonly secret?: string
  /** A member of a request that no record has. */
  readonly extra?: string
  /** Members that exclude one another, or are derived from one another: a change replaces all of them. */
  readonly together?: readonly (readonly string[])[]
  /** For an operator of the organization, not of the tenant. */
  readonly control?: boolean
  /** A fault that the schema cannot see. */
  readonly fault?: (body: Members, surroundings: Surroundings) => MaybeFault | Promise<MaybeFault>
}

/** In the order of creation: applications may have scopes of API resources. */
export const KINDS: readonly Kind[] = [
  {
    section: 'api_resources',
    key: 'resource',
    schema: apiResource.create,
    collection: '/api/v1/api-resources',
    update: 'PATCH',
    fixed: false,
    fault: (body) => resourceFault(draftOf(apiResource, apiResource.create.parse(body))),
  },
  {
    section: 'applications',
    key: 'name',
    schema: ReplaceApplication,
    collection: '/api/v1/applications',
    update: 'PUT',
    fixed: false,
    together: [
      ['client_type', 'token_endpoint_auth_method'],
      ['jwks', 'jwks_uri'],
    ],
    // The service judges hosts by its settings.
    fault: (body, { resourceScopes }) =>
      applicationFault(
        applicationDraft(ReplaceApplication.parse(body)),
        resourceScopes,
        () => undefined,
      ),
  },
  {
    section: 'sso_providers',
    key: 'name',
    schema: CreateProvider,
    collection: '/api/v1/sso/providers',
    update: 'PATCH',
    fixed: false,
    secret: 'client_secret',
  },
  {
    section: 'webhooks',
    key: 'url',
    schema: CreateWebhook,
    collection: '/api/v1/webhooks',
    update: 'PUT',
    fixed: false,
    secret: 'secret',
    // The deployment decides about ports, private networks and the types of its features.
    fault: (body) =>
      webhookFault(
        webhookDraft(CreateWebhook.parse(body)),
        { nonStandardPorts: true, privateNetworks: true },
        EVENT_TYPES,
      ),
  },
  {
    section: 'access_policies',
    key: 'name',
    schema: accessPolicy.create,
    collection: '/api/v1/access-policies',
    update: 'PATCH',
    fixed: false,
    extra: 'force',
  },
  {
    section: 'tenant_settings',
    key: null,
    schema: ChangeTenantSettings,
    collection: '/api/v1/tenant/settings',
    update: 'PATCH',
    fixed: true,
  },
  {
    section: 'organization_policies',
    key: 'organization_id',
    schema: PolicyChange.extend({ organization_id: z.uuid() }),
    collection: '/api/v1/organizations',
    update: 'PATCH',
    fixed: true,
    control: true,
  },
]

/** The address of a resource. */
export function addressOf({ section, collection, fixed }: Kind, id: string): string {
  if (section === 'organization_policies') return `${collection}/${encodeURIComponent(id)}/policy`
  return fixed ? collection : `${collection}/${encodeURIComponent(id)}`
}
