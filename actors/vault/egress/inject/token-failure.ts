/** What a caller gets when there is no access token for its call. */
import { denied } from '../../../domain/vault/denied.js'
import type { ProxyOutcome } from '../protocol.js'
import type { TokenUnavailable } from './unsealed-credential.js'

export function tokenFailure(why: TokenUnavailable['why']): ProxyOutcome {
  const failed = (error: string, detail: string): ProxyOutcome => ({
    tag: 'upstream_failed',
    error,
    detail,
  })
  switch (why.tag) {
    case 'gone':
      return denied('credential_revoked', 'The credential is revoked.')
    case 'lapsed':
      return { tag: 'reauthorization_required', connectCode: why.connectCode }
    case 'prohibited':
      if (why.fault === 'host_not_allowed')
        return denied(
          'host_not_allowed',
          'The credential does not allow the host of its token endpoint.',
        )
      return denied(
        'address_not_public',
        'The token endpoint of the credential has no public address.',
      )
    case 'refused':
      return failed(
        'proxy_configuration_error',
        `The token endpoint rejected the stored OAuth credentials: ${why.error}.`,
      )
    case 'malformed':
      return failed(
        'proxy_configuration_error',
        'The response of the token endpoint is not a valid OAuth response.',
      )
    case 'unavailable':
      return failed(
        'destination_unavailable',
        'The token endpoint of the credential is unavailable.',
      )
  }
}
