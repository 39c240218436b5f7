/** What the schema of a trusted issuer cannot see. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { invalid, type MemberInvalid } from '../../domain/entities/messages.js'
import {
  rulesOfIssuer,
  findRuleTarget,
  trustedIssuerTable,
} from '../../../storage/oauth/trusted-issuers.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import type { Change } from '../../domain/entities/entity.js'
import { mailDomain } from '../../domain/email.js'
import { httpsUrl } from '../../domain/entities/https-url.js'
import type {
  TrustedIssuerDraft,
  TrustedIssuerMembers,
} from '../../domain/entities/trusted-issuer.js'
import type { Principal } from '../../domain/principal.js'
import { powersBeyond } from '../../domain/scopes.js'
import type { IssuerRefused } from './protocol.js'
import { ownershipFault } from '../../platform/oauth/audience-ownership.js'
import type { AudienceRefused } from '../resources/api-resources/protocol.js'
import { keySetFault } from './issuer-keys.js'
import type { TrustedIssuersNeeds } from './needs.js'

/** SPIFFE-ID section 2.1. */
const TRUST_DOMAIN = /^[a-z0-9._-]{1,255}$/
const KEY_SET_CHARACTERS_MAX = 65_536
const PRIVATE = /"(?:d|k|p|q|dp|dq|qi)":/

/** The first fault of a draft. Undefined if the draft is valid. */
export function draftFault(
  draft: TrustedIssuerDraft,
  { urlFaultOf, ownIssuer }: Pick<TrustedIssuersNeeds, 'urlFaultOf' | 'ownIssuer'>,
): MemberInvalid | undefined {
  const { kind, issuer, jwksUri, jwks, spiffe } = draft
  const misfit = purposeFault(draft, ownIssuer)
  if (misfit !== undefined) return misfit
  if ((kind === 'spiffe') !== (spiffe !== null))
    return invalid('/spiffe', 'spiffe is for the kind spiffe, and required there.')
  if (spiffe !== null && (jwks !== null || jwksUri !== null))
    return invalid('/spiffe', 'The keys of a trust domain come from its bundle alone.')
  if (spiffe !== null) return spiffeFault(issuer, spiffe, urlFaultOf)
  if (kind === 'static_jwks' ? jwks === null : httpsUrl(issuer) === null)
    return kind === 'static_jwks'
      ? invalid('/jwks', 'The kind static_jwks needs jwks.')
      : invalid('/issuer', 'The issuer must be an https URL without query and fragment.')
  if (jwks !== null && jwksUri !== null) return invalid('/jwks', 'Send jwks or jwks_uri, not both.')
  if (jwks !== null) return keysFault(jwks)
  return jwksUri === null ? undefined : addressFault('/jwks_uri', jwksUri, urlFaultOf)
}

/** An issuer for people has no rules: its members say for whom it speaks. */
function purposeFault(draft: TrustedIssuerDraft, ownIssuer: string): MemberInvalid | undefined {
  const { purposes, kind, issuer, audiences, subjectMapping, emailDomains, trustAudSub } = draft
  if (purposes[0] === 'workload')
    return subjectMapping === null && emailDomains.length === 0 && !trustAudSub
      ? undefined
      : invalid('/subject_mapping', 'These members are for the purpose identity_assertion.')
  if (kind !== 'oidc' && kind !== 'static_jwks')
    return invalid('/kind', 'An issuer for people is of the kind oidc or static_jwks.')
  if (issuer === ownIssuer) return invalid('/issuer', 'This service is the issuer itself.')
  if (audiences.length > 0)
    return invalid('/audiences', 'The audience of an identity assertion is this service alone.')
  if (subjectMapping === null)
    return invalid('/subject_mapping', 'subject_mapping is link, email or jit.')
  if ((subjectMapping === 'link') !== (emailDomains.length === 0))
    return invalid('/email_domains', 'email_domains are for email and jit, and required there.')
  const index = emailDomains.findIndex((domain) => mailDomain(domain) !== domain)
  return index < 0
    ? undefined
    : invalid(`/email_domains/${index}`, 'It must be a domain in lower case (A-labels).')
}

/** The tenant must own the domains whose addresses an issuer may state. */
export async function domainsFault(
  needs: Parameters<typeof ownershipFault>[0],
  domains: readonly string[],
  tenantId: string,
  context: MessageContext,
): Promise<AudienceRefused | undefined> {
  for (const domain of domains) {
    if (mailDomain(domain) !== domain) continue
    const fault = await ownershipFault(needs, `https://${domain}`, tenantId, context)
    if (fault !== undefined) return fault
  }
  return undefined
}

/** Members on which the rules of an issuer rest. */
const FIXED = ['kind', 'issuer', 'purposes', 'spiffe'] as const

/** Why the caller may not change an issuer: what its rules rest on is fixed, and who replaces keys gets their tokens. */
export async function changeFault(
  tx: Transaction,
  { tenantId, scopes }: Principal,
  id: string,
  change: Change<TrustedIssuerMembers>,
): Promise<IssuerRefused | MemberInvalid | undefined> {
  const row = await trustedIssuerTable.find(tx, tenantId, id)
  if (row === undefined) return undefined
  const fixed = FIXED.find(
    (name) =>
      change[name] !== undefined && JSON.stringify(change[name]) !== JSON.stringify(row[name]),
  )
  if (fixed !== undefined)
    return invalid(`/${fixed}`, `${fixed} cannot change: its rules rest on it. Add another issuer.`)
  for (const { clientId } of await rulesOfIssuer(tx, tenantId, id)) {
    const target = await findRuleTarget(tx, tenantId, clientId)
    const beyond = powersBeyond(target?.scopes ?? [], scopes)
    if (beyond.length > 0) return { tag: 'forbidden', scopes: beyond }
  }
  return undefined
}

function spiffeFault(
  issuer: string,
  spiffe: NonNullable<TrustedIssuerDraft['spiffe']>,
  urlFaultOf: (url: string) => string | undefined,
): MemberInvalid | undefined {
  const { trust_domain: domain, bundle_endpoint_url: bundle } = spiffe
  if (!TRUST_DOMAIN.test(domain))
    return invalid(
      '/spiffe/trust_domain',
      'The trust domain has small letters, digits, dots, dashes and underscores.',
    )
  if (issuer !== `spiffe://${domain}`)
    return invalid('/issuer', `The issuer of this trust domain is spiffe://${domain}.`)
  return addressFault('/spiffe/bundle_endpoint_url', bundle, urlFaultOf)
}

function keysFault(jwks: Readonly<Record<string, unknown>>): MemberInvalid | undefined {
  const text = JSON.stringify(jwks)
  if (text.length > KEY_SET_CHARACTERS_MAX || keySetFault(jwks) !== undefined)
    return invalid('/jwks', `A key set has keys, and at most ${KEY_SET_CHARACTERS_MAX} characters.`)
  return PRIVATE.test(text)
    ? invalid('/jwks', 'The key set has a private or symmetric key.')
    : undefined
}

function addressFault(
  pointer: string,
  url: string,
  urlFaultOf: (url: string) => string | undefined,
): MemberInvalid | undefined {
  const fault = urlFaultOf(url)
  return fault === undefined
    ? undefined
    : invalid(pointer, `The address cannot be fetched: ${fault}.`)
}
