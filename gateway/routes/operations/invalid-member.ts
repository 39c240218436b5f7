/** The answer to a body of which the actor finds one member invalid. */
import { problem } from '../../route.js'

export const invalidMember = problem<{ pointer: string; detail: string }, 'bad-request'>(
  400,
  'bad-request',
  ({ pointer, detail }) => ({ detail, errors: [{ pointer: `#${pointer}`, detail }] }),
)
