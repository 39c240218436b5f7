/** The credential configurations: issuer metadata (OpenID4VCI section 12.2.4) and type metadata (SD-JWT VC section 6). */
import { createHash } from 'node:crypto'
import {
  CREDENTIAL_CONFIGURATIONS,
  type CredentialConfigurationId,
  credentialTypeUrl,
} from './catalogue.js'

/** Most keys, and so credentials, of one request. */
export const BATCH_SIZE = 10

/** Algorithms of key proofs. */
export const KEY_PROOF_ALGORITHMS = ['ES256', 'EdDSA'] as const

type ClaimText = {
  readonly path: readonly string[]
  readonly label: string
  readonly mandatory: boolean
}
type ConfigurationText = {
  readonly name: string
  readonly description: string
  readonly claims: readonly ClaimText[]
}

const claim = (label: string, path: readonly string[], mandatory = true): ClaimText => ({
  path,
  label,
  mandatory,
})

const TEXTS: Readonly<Record<CredentialConfigurationId, ConfigurationText>> = {
  TenantMembership: {
    name: 'Membership',
    description: 'The holder is a user of the tenant with these roles.',
    claims: [
      claim('Subject', ['sub']),
      claim('Tenant', ['tenant']),
      claim('Tenant ID', ['tenant', 'id']),
      claim('Tenant name', ['tenant', 'name']),
      claim('Roles', ['roles']),
      claim('Organization', ['org']),
      claim('Organization ID', ['org', 'id']),
      claim('Organization name', ['org', 'name']),
    ],
  },
  VerifiedEmail: {
    name: 'Email address',
    description: 'The holder has proved that the address is theirs.',
    claims: [
      claim('Email address', ['email']),
      claim('Email address is verified', ['email_verified']),
    ],
  },
  AgentDelegation: {
    name: 'Delegation',
    description: 'The holder is an agent that may act for a person within these scopes.',
    claims: [
      claim('Person', ['sub']),
      claim('Acting agent', ['act']),
      claim('Scopes', ['scope']),
      claim('Delegation ID', ['delegation_id']),
    ],
  },
}

/** The member `credential_configurations_supported`. */
export function supportedConfigurations(baseUrl: string): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    CREDENTIAL_CONFIGURATIONS.map((id) => {
      const { name, description, claims } = TEXTS[id]
      const configuration = {
        format: 'dc+sd-jwt',
        vct: credentialTypeUrl(baseUrl, id),
        scope: id,
        cryptographic_binding_methods_supported: ['jwk'],
        proof_types_supported: {
          jwt: { proof_signing_alg_values_supported: KEY_PROOF_ALGORITHMS },
        },
        credential_signing_alg_values_supported: ['ES256'],
        credential_metadata: {
          display: [
            {
              name,
              locale: 'en',
              description,
              background_color: '#12372a',
              text_color: '#ffffff',
            },
          ],
          claims: claims.map(({ path, mandatory, label }) => ({
            path,
            mandatory,
            display: [{ name: label, locale: 'en' }],
          })),
        },
      }
      return [id, configuration]
    }),
  )
}

type TypeMetadata = {
  /** UTF-8 JSON. Its bytes never change, because credentials contain their hash. */
  readonly body: Uint8Array
  /** The claim `vct#integrity` (SD-JWT VC section 7): a hash in the form of W3C Subresource Integrity. */
  readonly integrity: string
}

/** The document at the `vct` of a configuration. */
export function typeMetadata(baseUrl: string, id: CredentialConfigurationId): TypeMetadata {
  const { name, description, claims } = TEXTS[id]
  const body = Buffer.from(
    JSON.stringify({
      vct: credentialTypeUrl(baseUrl, id),
      name,
      description,
      display: [{ locale: 'en', name, description }],
      claims: [
        ...claims.map(({ path, label }) => ({
          path,
          display: [{ locale: 'en', label }],
          // A member of a disclosed object is disclosed with it.
          sd: path.length === 1 ? 'always' : 'never',
        })),
        ...['iss', 'nbf', 'exp', 'cnf', 'vct', 'status'].map((name_) => ({
          path: [name_],
          sd: 'never',
        })),
      ],
    }),
  )
  return { body, integrity: `sha256-${createHash('sha256').update(body).digest('base64')}` }
}
