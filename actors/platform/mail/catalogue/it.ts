/** Italian. */
import type { MailCatalogue } from './en.js'

export const it: MailCatalogue = {
  'mail.greeting': 'Gentile utente,',
  'mail.ignore': 'Se non è stato Lei, può ignorare questo messaggio: non cambierà nulla.',
  'mail.link.once': 'Il link funziona una sola volta, fino al {time}.',
  'mail.link.copy': 'Se il pulsante non funziona, copi questo indirizzo nel Suo browser:',
  'mail.sender': 'Questo messaggio è stato inviato per conto di {tenant}.',

  'sign_in.subject': 'Accesso a {tenant}',
  'sign_in.lead': 'Qualcuno, probabilmente Lei, vuole accedere a {tenant} con questo indirizzo.',
  'sign_in.code': 'Inserisca questo codice nella pagina in cui lo ha richiesto:',
  'sign_in.code.until':
    'Il codice funziona una sola volta, fino al {time}. Non lo comunichi a nessuno.',
  'sign_in.link': 'Apra questo link nel browser in cui lo ha richiesto e confermi lì:',
  'sign_in.button': 'Accedi',

  'password_reset.subject': 'Imposti una nuova password per {tenant}',
  'password_reset.lead':
    'Qualcuno, probabilmente Lei, ha dimenticato la password di {tenant}. Ne scelga qui una nuova:',
  'password_reset.button': 'Scegli una nuova password',

  'password_changed.subject': 'La Sua password è stata cambiata',
  'password_changed.lead':
    'La password del Suo account presso {tenant} è stata cambiata il {time}. È stato disconnesso da tutti gli altri dispositivi.',
  'password_changed.alarm':
    'Se non è stato Lei, reimposti subito la password e avvisi l’amministratore di {tenant}.',

  'account_recovery.subject': 'Recupero di un account presso {tenant}',
  'account_recovery.lead':
    'Un operatore del servizio ha emesso il {time} un link che imposta una nuova password per l’account {account} presso {tenant} e rimuove i secondi fattori.',
  'account_recovery.alarm':
    'Se non ne conosce il motivo, contatti subito l’operatore del servizio.',

  'admin_password_reset.subject': 'La Sua password per {tenant} è stata reimpostata',
  'admin_password_reset.lead':
    'Un amministratore di {tenant} ha reimpostato la Sua password. Quella precedente non funziona più e Lei è stato disconnesso. Ne scelga qui una nuova:',
  'admin_factors_reset.subject': 'I Suoi secondi fattori per {tenant} sono stati rimossi',
  'admin_factors_reset.lead':
    'Un amministratore di {tenant} ha rimosso il {time} le Sue passkey, la Sua app di autenticazione e i Suoi codici di recupero. Lei è stato disconnesso. Potrà configurarne di nuovi al prossimo accesso.',
  'admin_factors_reset.password':
    'Non rimane nessun altro modo per accedere. Scelga qui una password:',
  'admin_reset_refused.subject': 'Il Suo account presso {tenant} non è stato modificato',
  'admin_reset_refused.lead':
    'Un amministratore di {tenant} ha tentato il {time} di reimpostare la password o i secondi fattori del Suo account. Nulla è stato modificato, perché Lei usa l’account anche altrove. Può modificare entrambi nella pagina del Suo account.',
  'admin_reset.alarm': 'Se non ne conosce il motivo, contatti l’amministratore di {tenant}.',

  'invitation.subject': 'Ha ricevuto un invito a {tenant}',
  'invitation.lead': 'Ha ricevuto un invito a {tenant}. Lo accetti qui:',
  'invitation.button': 'Accetta l’invito',

  'email_verification.subject': 'Confermi il Suo indirizzo email per {tenant}',
  'email_verification.lead': 'Confermi che questo è il Suo indirizzo email:',
  'email_verification.button': 'Conferma l’indirizzo',

  'sign_up.subject': 'Confermi il Suo indirizzo per {tenant}',
  'sign_up.lead': 'Confermi il Suo indirizzo per completare il Suo account presso {tenant}:',
  'sign_up.button': 'Completa l’account',

  'sign_up_known.subject': 'Ha già un account presso {tenant}',
  'sign_up_known.lead':
    'Ha provato a registrarsi presso {tenant} con questo indirizzo, ma ha già un account. Acceda qui:',
  'sign_up_known.button': 'Accedi',

  'confirmation_code.subject': 'Il Suo codice per {tenant}',
  'confirmation_code.lead': 'Inserisca questo codice nella pagina in cui lo ha richiesto:',

  'text.code': '{code} è il Suo codice per {tenant}. Non lo comunichi a nessuno.',
}
