/** Writes the sequence diagrams of the guides: `node dist/test/support/pages/write-flow-pictures.js`. */
import { writeFileSync } from 'node:fs'
import { FLOWS, flowPicture } from './flow-pictures.js'

for (const [name, flow] of Object.entries(FLOWS))
  writeFileSync(
    new URL(`../../../../docs/pictures/${name}.svg`, import.meta.url),
    flowPicture(flow),
  )
