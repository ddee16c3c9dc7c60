from django.urls import path

from . import views

urlpatterns = [
    path("sessions", views.sessions),
    path("sessions/<session_id>/messages", views.messages),
    path("sessions/<session_id>/context", views.context),
]
