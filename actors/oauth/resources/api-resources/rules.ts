/** Rules for API resources. See docs/guides/oauth/api-resources.md. */
import { resourceKey } from '../../../../storage/oauth/api-resources.js'
import { CREDENTIAL_SCOPES } from '../../../domain/credentials/catalogue.js'
import { SCOPES } from '../../../domain/scopes.js'
import type { ApiResourceDraft } from '../../../domain/entities/api-resource.js'
import { invalid, type MemberInvalid } from '../../../domain/entities/messages.js'

/** scope-token of RFC 6749 section 3.3. */
const SCOPE_NAME = /^[\x21\x23-\x5b\x5d-\x7e]{1,128}$/
const OURS = new Set<string>([...SCOPES, ...CREDENTIAL_SCOPES])

/** The first fault of a draft. Undefined if the draft is valid. */
export function draftFault(draft: ApiResourceDraft): MemberInvalid | undefined {
  return resourceFault(draft.resource) ?? scopesFault(draft)
}

function resourceFault(resource: string): MemberInvalid | undefined {
  if (resourceKey(resource) !== null) return undefined
  return invalid(
    '/resource',
    'The resource must be an absolute https URI, or an http URI of a loopback host, without fragment and user, of at most 512 characters (RFC 8707).',
  )
}

function scopesFault({ scopes }: ApiResourceDraft): MemberInvalid | undefined {
  for (const [index, { name }] of scopes.entries()) {
    const pointer = `/scopes/${index}/name`
    if (!SCOPE_NAME.test(name))
      return invalid(pointer, 'The name must be a scope token (RFC 6749).')
    // A resource must not define powers of this service, claims about users, or credentials.
    if (OURS.has(name)) return invalid(pointer, 'The name is a scope of this service.')
    if (scopes.findIndex((other) => other.name === name) !== index)
      return invalid(pointer, 'The name occurs twice.')
  }
  return undefined
}
