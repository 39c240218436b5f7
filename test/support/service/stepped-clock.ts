/** The wall clock of whole processes, PostgreSQL among them, stepped while they run (libfaketime). */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** A process reads the file again when more than this time has passed, counted in whole seconds. */
const READ_AGAIN_SECS = 1

export interface SteppedClock {
  /** Variables of each process that has this clock. Its monotonic clock is not changed. */
  readonly environment: Readonly<Record<string, string>>
  /**
   * Resolves when a process that reads its clock all the time has the new one. A busy one may need longer.
   * @param secs from the real time, may be negative.
   */
  stepTo(secs: number): Promise<void>
  remove(): void
}

/** @param faketime the path of the program. */
export function steppedClock(faketime: string): SteppedClock {
  const folder = mkdtempSync(join(tmpdir(), 'svc-clock-'))
  // PostgreSQL runs as another user.
  chmodSync(folder, 0o755)
  const file = join(folder, 'offset')
  const write = (secs: number) => {
    const draft = `${file}.new`
    writeFileSync(draft, `${secs < 0 ? '' : '+'}${secs}\n`, { mode: 0o644 })
    renameSync(draft, file)
  }
  write(0)
  const preload = execFileSync(faketime, ['-m', '-f', '+0', 'printenv', 'LD_PRELOAD'])
  return {
    environment: {
      LD_PRELOAD: preload.toString().trim(),
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_CACHE_DURATION: String(READ_AGAIN_SECS),
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      DONT_FAKE_MONOTONIC: '1',
    },
    async stepTo(secs) {
      write(secs)
      await sleep((READ_AGAIN_SECS + 1) * 1000)
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
