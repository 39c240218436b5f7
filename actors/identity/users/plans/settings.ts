/** [billing]: plans of organizations. */
import { flag } from '../../../../runtime/kernel/config/kinds.js'
import { section } from '../../../../runtime/kernel/config/section.js'

export const billingSettings = section(
  'billing',
  {
    enabled: flag(false).describe(
      'Organizations may have plans, which decide the features and limits of their environments.',
    ),
  },
  { about: 'Plans of organizations. An organization without a plan may use everything.' },
)
