/** [console]: the administration pages. */
import { flag } from '../../../runtime/kernel/config/kinds.js'
import { section } from '../../../runtime/kernel/config/section.js'

export const consoleSettings = section(
  'console',
  { enabled: flag(true).describe('Serve the console at /console.') },
  { about: 'The administration pages.' },
)
