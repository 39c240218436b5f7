/** Texts of the start page, of sign-up, and of the mails of a development service. */
import type { firstSteps as english } from '../en/first-steps.js'

export const firstSteps: Readonly<Record<keyof typeof english, string>> = {
  'home.for':
    'Connectez-vous pour consulter votre compte, ou lisez comment connecter une application ou un agent.',
  'home.workspace': 'Identifiant de l’espace de travail',
  'home.console': 'Ouvrir la console',
  'home.mail': 'E-mails de ce service de développement',
  'home.agents': 'Commencez ici si vous êtes un agent',
  'home.overview': 'Présentation pour les modèles de langage',
  'home.mcp': 'Serveur MCP, sans identifiants',

  'error.home': 'Aller à la page d’accueil',

  'register.title': 'Créer votre compte',
  'register.lead':
    'Créez un compte chez {tenant}. Nous vous envoyons par e-mail un lien pour confirmer votre adresse.',
  'register.submit': 'Envoyer le lien',
  'register.login': 'Vous avez déjà un compte ? Connectez-vous',
  'register.offer': 'Pas encore de compte ? Créez-en un',
  'register.sent': 'Nous avons envoyé un e-mail à {email}. Ouvrez son lien pour continuer.',
  'register.sent.hint':
    'Aucun e-mail après une minute ? Vérifiez le dossier des courriers indésirables et l’adresse.',
  'register.again': 'Utiliser une autre adresse',
  'register.confirm.title': 'Terminer la création de votre compte',
  'register.confirm.lead': 'Votre adresse est {email}. Choisissez un mot de passe pour {tenant}.',
  'register.confirm.known':
    'Vous avez déjà un compte avec {email}. Rejoignez {tenant}, puis connectez-vous comme d’habitude.',
  'register.confirm.submit': 'Créer le compte',
  'register.confirm.join': 'Rejoindre {tenant}',
  'register.off.title': 'Inscriptions fermées',
  'register.off':
    '{tenant} ne propose pas d’inscription ici. Demandez une invitation à un administrateur.',
  'register.gone.title': 'Le lien n’est plus valable',
  'register.gone':
    'Ce lien a été utilisé ou a expiré. Inscrivez-vous de nouveau pour en recevoir un autre.',
  'register.start': 'S’inscrire de nouveau',

  'dev_mail.title': 'E-mails de développement',
  'dev_mail.lead':
    'Les derniers e-mails envoyés par ce service, gardés en mémoire. Cette page n’existe pas en production.',
  'dev_mail.none':
    'Aucun e-mail pour le moment. Inscrivez-vous ou demandez un code, puis actualisez.',
  'dev_mail.hint':
    'Un bac à sable n’écrit qu’à des adresses telles que vous@example.com, aux domaines vérifiés et à ses propriétaires.',
  'dev_mail.reload': 'Actualiser',
  'dev_mail.message.title': 'E-mail',
  'dev_mail.subject': 'Objet',
  'dev_mail.to': 'À',
  'dev_mail.sent': 'Envoyé',
  'dev_mail.open': 'Ouvrir le lien',
  'dev_mail.text': 'En texte',
  'dev_mail.html': 'En HTML',
  'dev_mail.back': 'Tous les e-mails',
}
