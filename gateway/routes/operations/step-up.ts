/** The answer to a sign-in that is too old or too weak (RFC 9470 section 3). */
import { problem } from '../../route.js'

export const stepUpNeeded = problem<{ maxAgeSecs: number }, 'unauthorized'>(
  401,
  'unauthorized',
  ({ maxAgeSecs }) => ({
    detail: 'Sign in again with two factors.',
    error: 'insufficient_user_authentication',
    headers: {
      'www-authenticate': `Bearer error="insufficient_user_authentication", acr_values="aal3 aal2", max_age="${maxAgeSecs}"`,
    },
  }),
)
